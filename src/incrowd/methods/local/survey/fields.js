// The fields of a question: what a person fills in, and the answer that it stands for.
import { codeOf } from "./randomizer.js";

const FEW = 12;

/** An element with a text and properties. */
export const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

/** Whether a question has a field for each of its answers. */
export const listed = inputs => ["radio", "checkbox"].includes(inputs[0].type);

function years(question) {
  const [first, last] = [question.first, question.last].map(text => Number(text.slice(0, 4)));
  return Array.from({ length: last - first + 1 }, (_, at) => `${first + at}`.padStart(4, "0"));
}

function select(id, values) {
  const box = made("select", "", { id, autocomplete: "off" });
  box.append(made("option", "", { value: "" }), ...values.map(value => made("option", value, { value })));
  return box;
}

/** The fields of a question, empty and without words; those of a month are the month and the year. */
export function inputsOf(question, id) {
  if (question.asks === "month") {
    const months = Array.from({ length: 12 }, (_, at) => `${at + 1}`.padStart(2, "0"));
    return [select(id, months), select(`${id}-year`, years(question))];
  }
  if (question.asks === "choice" && question.labels.length > FEW) return [select(id, question.labels)];
  if (question.labels) {
    const type = question.asks === "choice" ? "radio" : "checkbox";
    return question.labels.map((value, at) => made("input", "", { type, name: id, id: `${id}-${at}`, value }));
  }
  const inputMode = { number: "decimal", ordered: "numeric" }[question.asks] ?? "text";
  return [made("input", "", { id, autocomplete: "off", spellcheck: false, inputMode })];
}

/** The answer in the fields, as it is randomized; a comma in a number is read as a point, as languages write it. */
export function answerOf({ question, inputs, skip }) {
  if (skip.checked) return "";
  if (listed(inputs)) return inputs.filter(input => input.checked).map(input => input.value).join(";");
  const [value, year] = inputs.map(input => input.value.trim());
  if (question.asks === "month") return value && year ? `${year}-${value}` : value || year;
  return question.asks === "number" ? value.replace(",", ".") : value;
}

/** Whether silence is an answer by itself: no option, or a word without letters. */
export const silent = question => question.asks === "several" || (question.asks === "word" && question.skip === undefined);

/** Whether an answer can be reported; a question that has no "skip" needs one. */
export function fits(entry) {
  const answer = answerOf(entry);
  if (answer === "" && !entry.skip.checked) return silent(entry.question);
  try { codeOf(entry.question, answer); return true; } catch { return false; }
}

/** A month in words of a language. */
export const monthName = (month, language, more = {}) =>
  new Date(Date.UTC(2000, month, 1)).toLocaleDateString(language, { month: "long", timeZone: "UTC", ...more });

/** A month with its year, from a text such as 2024-02. */
export function monthText(text, language) {
  const day = new Date(Date.UTC(2000, Number(text.slice(5, 7)) - 1, 1));
  day.setUTCFullYear(Number(text.slice(0, 4)));
  return day.toLocaleDateString(language, { month: "long", year: "numeric", timeZone: "UTC" });
}

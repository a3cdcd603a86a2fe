// The page of a survey: check it, ask, randomize here, show what will be sent, send it once.
//
// Answers, random numbers and the report are in memory alone.  Stored is that a token was used: a digest of survey and
// token with the epsilon of the report, before it is first sent.  So a token is never randomized for twice.
import { belief, dots, filled, languageOf, ofHundred, spokenFor, supportOf } from "./explanation.js";
import { checkedId, fraction, sha256 } from "./published.js";
import { codeOf, randomize, systemWords } from "./randomizer.js";

const PREFIX = "incrowd.", USED = "incrowd.used.", SPENT = "incrowd.spent", TOKEN = /^[0-9a-f]{64}$/, FEW = 12;
const ABOUT = ["organizer", "contact", "aim"];

const $ = id => document.getElementById(id);
const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const near = text => { const [top, bottom] = fraction(text); return Number(top) / Number(bottom); };

let current = null;  // { token, coins, report, answers, body, marked }: the report of the token in hand
let survey = null, words = null, language = "en", fields = [], message = null, linked = false;

/** One of the page's own sentences, in the language in use. */
const say = (name, places) => filled(words.sentences[language][name], places);

/** A text of the survey in the language in use, or as the survey has it. */
const text = (place, own = "") => survey.texts?.[language]?.[place] ?? own;
const about = place => text(place, Object.values(survey.texts ?? {}).map(part => part[place]).find(Boolean));
const labelOf = (question, at) => text(`label.${question.name}.${at}`, question.labels[at]);
const textOf = question => text(`text.${question.name}`, question.text);

// The fragment of a link holds its token: it leaves the address at once, and the history with it.
function takeToken() {
  const token = location.hash.slice(1).replace(/^token=/, "");
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/** Where a browser remembers that a token was used for a survey; neither can be read from it. */
export const placeOf = (id, token) => `${USED}${sha256(`incrowd used token 1\n${id}\n${token}`)}`;

/** Remove what earlier versions stored: reports with their random numbers. What was spent stays counted, by digests. */
export function forgetEarlier(storage) {
  let spent = {};
  try { spent = JSON.parse(storage.getItem(SPENT)) ?? {}; } catch { /* it cannot be read: nothing can be counted */ }
  const names = Array.from({ length: storage.length }, (_, at) => storage.key(at));
  names.filter(name => name.startsWith(PREFIX) && !name.startsWith(USED)).forEach(name => storage.removeItem(name));
  for (const [id, epsilon] of Object.entries(spent)) storage.setItem(placeOf(id, ""), `${epsilon}`);
}

/** Whether one more report keeps the limit of a person; all reports of this browser count as those of one person. */
export function allowed(survey, storage) {
  if (survey.per_person === null) return true;
  const names = Array.from({ length: storage.length }, (_, at) => storage.key(at)).filter(name => name.startsWith(USED));
  try {
    const amounts = [survey.epsilon, ...names.map(name => storage.getItem(name))].map(fraction);
    const [top, bottom] = amounts.reduce(([one, by], [other, of]) => [one * of + other * by, by * of]);
    const [limit, part] = fraction(survey.per_person);
    return top * part <= limit * bottom;
  } catch {
    return false;
  }
}

// A message is kept by its name, so that it changes with the language; a server's own sentence stays as it came.
function tell(...names) {
  message = names;
  $("message").textContent = names.map(name => words.sentences[language][name] ?? name).join(" ");
}

function hintOf(question) {
  const unit = text(`unit.${question.name}`, about(`unit.${question.name}`)), tail = unit ? ` ${unit}` : "";
  const places = { number: () => [near(question.low), near(question.high)], ordered: () => [question.first, question.last] };
  if (question.asks === "choice") return say("hint-choice");
  if (question.asks === "word") return say("hint-word", { length: question.length, alphabet: question.alphabet });
  const [low, high] = places[question.asks]();
  return `${say(`hint-${question.asks}`, { low: low.toLocaleString(language), high: high.toLocaleString(language) })}${tail}`;
}

function inputsOf(question, id) {
  if (question.asks !== "choice") {
    const inputMode = { number: "decimal", ordered: "numeric" }[question.asks] ?? "text";
    return [made("input", "", { id, autocomplete: "off", spellcheck: false, inputMode })];
  }
  if (question.labels.length > FEW) {
    const select = made("select", "", { id, autocomplete: "off" });
    select.append(made("option", "", { value: "" }), ...question.labels.map(value => made("option", "", { value })));
    return [select];
  }
  return question.labels.map((value, at) => made("input", "", { type: "radio", name: id, id: `${id}-${at}`, value }));
}

/** The card of a question: its text, what may be answered, fields, "skip", an error, and how chance protects. */
function card(question) {
  const id = `q-${question.name}`, box = made("fieldset", "", { className: "card", id: `card-${question.name}` });
  const parts = Object.fromEntries(["legend", "number", "hint", "error", "explained", "skipped"].map(name => [name,
    made(name === "legend" ? "legend" : "p", "", { className: name, id: `${name}-${question.name}` })]));
  const inputs = inputsOf(question, id), skip = made("input", "", { type: "checkbox", id: `skip-${question.name}` });
  const labels = inputs.map(input => made("label", "", { htmlFor: input.id })), skips = made("label", "", { htmlFor: skip.id });
  inputs.forEach(input => input.setAttribute("aria-describedby", `${parts.hint.id} ${parts.error.id}`));
  parts.explained.setAttribute("aria-live", "polite");
  const rows = inputs.map((input, at) => {
    const row = made("div", "", { className: input.type === "radio" ? "row" : "" });
    row.append(...(input.type === "radio" ? [input, labels[at]] : [input]));
    return row;
  });
  if (inputs[0].type !== "radio") inputs[0].setAttribute("aria-labelledby", parts.legend.id);
  const skipping = made("div", "", { className: "row" });
  skipping.append(skip, skips);
  box.append(parts.legend, parts.number, parts.hint, ...rows, parts.error);
  if (question.skip !== undefined) box.append(skipping, parts.skipped);
  const pictures = made("div", "", { className: "pictures" });
  box.append(parts.explained, pictures);
  const made_ = { question, box, inputs, labels, skip, skips, pictures, ...parts };
  box.addEventListener("input", () => { clearError(made_); explain(made_); });
  return made_;
}

function answerOf({ inputs, skip }) {
  if (skip.checked) return "";
  return (inputs[0].type === "radio" ? inputs.find(input => input.checked)?.value : inputs[0].value.trim()) ?? "";
}

/** The answer as it is written into a report: a comma in a number is read as a point, as languages write it. */
const plainAnswer = entry => (entry.question.asks === "number" ? answerOf(entry).replace(",", ".") : answerOf(entry));

function clearError(entry) {
  entry.error.textContent = "";
  entry.inputs.forEach(input => input.removeAttribute("aria-invalid"));
}

/** Whether an answer can be reported; a question that has no "skip" needs one. */
function fits(entry) {
  const answer = plainAnswer(entry);
  if (answer === "" && !entry.skip.checked) return entry.question.asks === "word" && entry.question.skip === undefined;
  try { codeOf(entry.question, answer); return true; } catch { return false; }
}

function refuse(entry) {
  entry.error.textContent = say("outside", { hint: hintOf(entry.question) });
  entry.inputs.forEach(input => input.setAttribute("aria-invalid", "true"));
}

/** How chance protects the answer that was given, with its own numbers; nothing before one is given. */
function explain(entry) {
  const { question, explained, pictures } = entry, given = plainAnswer(entry);
  entry.inputs.forEach(input => { input.disabled = entry.skip.checked; });
  pictures.replaceChildren();
  explained.textContent = "";
  if (!fits(entry) || (given === "" && !entry.skip.checked)) return;
  if (question.asks !== "choice") {
    explained.textContent = say("belief", { own: belief(question.randomizers).toLocaleString(language) });
    return;
  }
  const at = question.labels.indexOf(given || question.skip), [own, rest] = supportOf(question.randomizers[0]).map(ofHundred);
  const places = { answer: labelOf(question, at), other: labelOf(question, at === 0 ? 1 : 0), own, rest };
  explained.textContent = say(question.randomizers[0].family === "response" ? "says" : "counts", places);
  pictures.append(dots(own, say("case-own")), dots(rest, say("case-other")));
}

// Whoever comes next finds nothing: no answer, no random number, no report.
function forget(token = "") {
  current = null;
  $("form").reset();
  $("token").value = token;
  linked = TOKEN.test(token);
  ["coins", "sent", "meaning"].forEach(id => $(id).replaceChildren());
  $("entries").disabled = false;
  $("result").hidden = true;
  fields.forEach(entry => { clearError(entry); explain(entry); });
  showToken();
  tell();
}

function showToken() {
  $("token-box").hidden = linked;
  $("token-read").hidden = !linked;
}

const problem = (...names) => Object.assign(new Error(names[0]), { names });

function reportOf(id) {
  const token = $("token").value.trim(), wrong = fields.filter(entry => !fits(entry));
  fields.forEach(clearError);
  wrong.forEach(refuse);
  if (!TOKEN.test(token)) {
    linked = false;
    showToken();
    $("token").focus();
    throw problem("token-wrong", "nothing");
  }
  if (wrong.length) {
    wrong[0].inputs[0].focus();
    throw problem("nothing");
  }
  if (localStorage.getItem(placeOf(id, token)) !== null) throw problem("token-used", "nothing");
  if (!allowed(survey, localStorage)) throw problem("limit", "nothing");
  const answers = Object.fromEntries(fields.map(entry => [entry.question.name, plainAnswer(entry)]));
  const drawn = randomize(survey, id, answers, systemWords());
  const body = JSON.stringify({ reports: [{ token, report: drawn.report }] });
  return { token, coins: drawn.coins, report: drawn.report, body, marked: false };
}

/** What a report says, in words. */
function meaningOf({ question: name, report }) {
  const question = survey.questions.find(each => each.name === name), labels = spokenFor(question, report);
  const shown = labels?.map(label => labelOf(question, question.labels.indexOf(label)));
  const lines = survey.questions.length > 1 ? [say("result-question", { question: textOf(question) })] : [];
  if (labels === null) return [...lines, say("result-code")];
  if (!labels.length) return [...lines, say("result-nothing")];
  const response = question.randomizers[0].family === "response";
  return [...lines, response ? say("result-says", { label: shown[0] }) : say("result-set", { labels: shown.join(", ") })];
}

/** The random numbers in words, with what those mean that are easily said. */
function coinLines({ coins, report }) {
  const several = survey.questions.length > 1, total = survey.questions.length;
  const question = survey.questions.find(each => each.name === report.question), [plain] = question.randomizers;
  const response = question.asks === "choice" && plain.family === "response", at = several ? 1 : 0;
  return coins.map((coin, place) => {
    const drawn = say("coin", { last: `${BigInt(coin.below) - 1n}`, drawn: coin.drawn });
    if (several && place === 0) return `${drawn} ${say("coin-question", { number: Number(coin.drawn) + 1, total })}`;
    return response && place === at ? `${drawn} ${say("coin-own", { own: plain.own })}` : drawn;
  });
}

function show() {
  $("meaning").replaceChildren(...meaningOf(current.report).map(line => made("p", line)));
  $("coins").replaceChildren(...coinLines(current).map(line => made("li", line)));
  $("sent").textContent = JSON.stringify(current.report);
  $("entries").disabled = true;
  $("result").hidden = false;
}

// A token is stored as used before its report leaves: should no reply come, only this page can send the report again.
// Two tabs take turns here, where the browser lets them; one of them finds the token used.
async function mark(id) {
  if (current.marked) return;
  const sent = current, place = placeOf(id, sent.token), alone = navigator.locks;
  const store = () => {
    if (localStorage.getItem(place) !== null) throw problem("token-used", "nothing");
    if (!allowed(survey, localStorage)) throw problem("limit", "nothing");
    try { localStorage.setItem(place, survey.epsilon); } catch { throw problem("cannot-store"); }
    sent.marked = true;
  };
  await (alone ? alone.request(PREFIX, store) : store());
}

async function send() {
  const sent = current;
  const reply = await fetch("reports", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: sent.body,
  });
  const refusals = { 403: "token-unknown", 409: "token-elsewhere" };
  const names = reply.ok ? [survey.shuffled === null ? "counted" : "received"]
    : [refusals[reply.status] ?? (await reply.json()).error];
  if ((reply.ok || reply.status === 409) && current === sent) forget();
  return names;
}

async function submit(id) {
  if ($("send").disabled || current === null) return;
  tell();
  $("send").disabled = true;
  try {
    await mark(id);
    tell(...await send().catch(() => ["not-reached"]));
  } catch (refusal) {
    forget();
    tell(...refusal.names);
  }
  $("send").disabled = false;
}

const factor = () => {
  const number = Math.ceil(100 * Math.exp(near(survey.epsilon)) * (1 + 1e-12)) / 100;
  return number.toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
};

/** All words of the page in the language in use; answers and a report in hand stay as they are. */
function speak() {
  document.documentElement.lang = language;
  document.querySelectorAll("[data-say]").forEach(part => { part.textContent = say(part.dataset.say); });
  document.title = $("title").textContent = text("title", survey.title);
  $("introduction").textContent = about("introduction") ?? "";
  const minutes = about("minutes"), rows = ABOUT.map(place => [say(place), about(place)]);
  rows.push([say("time"), minutes && say("minutes", { number: minutes })], [say("consent-purpose"), survey.purpose]);
  $("about").replaceChildren(...rows.filter(([, part]) => part).flatMap(([name, part]) => [made("dt", name), made("dd", part)]));
  $("promise").textContent = say("factor", { factor: factor() });
  $("several").hidden = survey.questions.length === 1;
  $("shuffled").textContent = survey.shuffled === null ? "" : say("shuffled", { number: Number(survey.shuffled.batch).toLocaleString(language) });
  $("unreviewed").hidden = words.reviewed.includes(language);
  fields.forEach(speakCard);
  if (current !== null) show();
  if (message !== null) tell(...message);
}

function speakCard(entry, at) {
  const { question, legend, number, hint, inputs, labels, skips, skipped } = entry;
  legend.textContent = textOf(question);
  number.textContent = fields.length > 1 ? say("card", { number: at + 1, total: fields.length }) : "";
  hint.textContent = hintOf(question);
  labels.forEach((label, place) => { label.textContent = question.labels ? labelOf(question, place) : ""; });
  if (inputs[0].tagName === "SELECT") {
    question.labels.forEach((_, place) => { inputs[0].options[place + 1].textContent = labelOf(question, place); });
  }
  skips.textContent = say("skip");
  const label = question.labels && labelOf(question, question.labels.indexOf(question.skip));
  skipped.textContent = question.labels ? say("skip-label", { label }) : say("skip-random");
  if (entry.error.textContent) refuse(entry);
  explain(entry);
}

function listen(id) {
  fields = survey.questions.map(card);
  $("questions").replaceChildren(...fields.map(({ box }) => box));
  $("language").replaceChildren(...Object.entries(words.languages).map(([value, name]) => made("option", name, { value, lang: value })));
  $("language").value = language;
  $("language").addEventListener("change", () => { language = $("language").value; speak(); });
  $("form").addEventListener("submit", event => {
    event.preventDefault();
    tell();
    try {
      current ??= reportOf(id);
      show();
      $("result-title").focus();
    } catch (refusal) {
      tell(...refusal.names ?? [refusal.message]);
    }
  });
  $("send").addEventListener("click", () => submit(id));
  $("again").addEventListener("click", () => { forget($("token").value.trim()); (fields[0].inputs[0]).focus(); });
}

// Another link was opened in this tab: its token starts afresh. The same one again keeps its report.
function arrive() {
  const token = takeToken();
  if (token && token !== current?.token) forget(token);
}

async function start(token) {
  const loaded = async name => (await fetch(name)).json();
  try {
    words = await loaded("words.json");
    language = languageOf(navigator.languages ?? [], Object.keys(words.languages));
    forgetEarlier(localStorage);
    const [published, { id }] = await Promise.all(["survey.json", "id.json"].map(loaded));
    checkedId(published, id);
    survey = published;
    listen(id);
    speak();
    forget(token);
    window.addEventListener("hashchange", arrive);
    window.addEventListener("pagehide", () => forget());
    $("page").hidden = false;
    document.documentElement.dataset.ready = "yes";
  } catch (refusal) {
    $("page").hidden = $("form").hidden = true;
    const names = [refusal.say ?? (refusal.name === "SecurityError" ? "no-storage" : "not-read"), "nothing"];
    if (words === null) $("message").textContent = "The survey could not be read. Load the page again. Nothing was randomized or sent.";
    else tell(...names);
    document.documentElement.dataset.ready = "no";
  }
}

if (typeof document !== "undefined" && $("form")) start(takeToken());

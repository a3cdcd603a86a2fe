// The page of a survey: ask, randomize here, show the coins and what will be sent, keep it, send it.
import { randomize, systemWords } from "./randomizer.js";

const $ = id => document.getElementById(id);
const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const parts = text => { const [top, bottom = "1"] = text.split("/"); return Number(top) / Number(bottom); };

function field(question) {
  const box = made("p"), label = made("label", question.text, { htmlFor: question.name });
  let input;
  if (question.asks === "choice") {
    input = made("select");
    input.append(made("option", "", { value: "" }), ...question.labels.map(each => made("option", each, { value: each })));
  } else {
    input = made("input", "", { autocomplete: "off" });
    if (question.asks === "number") input.placeholder = `from ${parts(question.low)} to ${parts(question.high)}`;
    if (question.asks === "ordered") input.placeholder = `from ${question.first} to ${question.last}`;
    if (question.asks === "word") input.placeholder = `at most ${question.length} letters`;
  }
  input.id = question.name;
  box.append(label, made("br"), input);
  return box;
}

// What this browser let out of its person, over all surveys of this address; kept here, not at the server.
function spent() { return JSON.parse(localStorage.getItem("incrowd.spent") ?? "{}"); }

function allowed(survey, id) {
  if (survey.per_person === null) return true;
  const others = Object.entries(spent()).filter(([name]) => name !== id).map(([, epsilon]) => parts(epsilon));
  return others.reduce((sum, each) => sum + each, parts(survey.epsilon)) <= parts(survey.per_person) + 1e-12;
}

// A report is made once and kept before it is sent: asked again, the same bytes are sent again.
export function reportOf(survey, id, answers) {
  const kept = localStorage.getItem(`incrowd.report.${id}`);
  if (kept !== null) return JSON.parse(kept);
  if (!allowed(survey, id)) throw new Error("You have answered as many surveys as your bound allows. Nothing is sent.");
  const drawn = randomize(survey, id, answers, systemWords());
  const result = { coins: drawn.coins, text: JSON.stringify(drawn.report) };
  localStorage.setItem("incrowd.spent", JSON.stringify({ ...spent(), [id]: survey.epsilon }));
  localStorage.setItem(`incrowd.report.${id}`, JSON.stringify(result));
  return result;
}

function show(found) {
  $("coins").replaceChildren(...found.coins.map(each => made("li", `below ${each.below}: ${each.drawn}`)));
  $("sent").textContent = found.text;
  $("result").hidden = false;
}

async function send(found, token) {
  const reply = await fetch("reports", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ reports: [{ token, report: JSON.parse(found.text) }] }),
  });
  const told = await reply.json();
  return reply.ok ? "Thank you: your report was counted." : told.error;
}

async function start() {
  const [survey, { id }] = await Promise.all(["survey.json", "id.json"].map(async name => (await fetch(name)).json()));
  $("questions").replaceChildren(...survey.questions.map(field));
  $("form").addEventListener("submit", event => {
    event.preventDefault();
    $("said").textContent = "";
    try {
      const answers = Object.fromEntries(survey.questions.map(each => [each.name, $(each.name).value]));
      show(reportOf(survey, id, answers));
    } catch (problem) {
      $("said").textContent = problem.message;
    }
  });
  $("send").addEventListener("click", async () => {
    const found = JSON.parse(localStorage.getItem(`incrowd.report.${id}`));
    $("said").textContent = await send(found, $("token").value.trim()).catch(() => "The server was not reached. Try again.");
  });
  document.documentElement.dataset.ready = "yes";
}

if (typeof document !== "undefined" && $("form")) start();

// The page of a survey: check it, ask, randomize here, show what will be sent, send it once.
//
// Answers, random numbers and the report are in memory alone.  Stored is that a token was used: a digest of survey and
// token with the epsilon of the report, before it is first sent.  So a token is never randomized for twice.
import { checkedId, fraction, sha256 } from "./published.js";
import { randomize, systemWords } from "./randomizer.js";

const PREFIX = "incrowd.", USED = "incrowd.used.", SPENT = "incrowd.spent", TOKEN = /^[0-9a-f]{64}$/;
const NOTHING = "Nothing was randomized or sent.";
const AGAIN = `This token was used in this browser before. ${NOTHING} If no confirmation came, tell whoever invited you.`;

const $ = id => document.getElementById(id);
const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const near = text => { const [top, bottom] = fraction(text); return Number(top) / Number(bottom); };

let current = null;  // { token, coins, text, body, marked }: the report of the token in hand

// The fragment of a link holds its token: it leaves the address at once, and the history with it.
function takeToken() {
  const token = location.hash.slice(1);
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

function field(question) {
  const id = `q-${question.name}`, box = made("p"), label = made("label", question.text, { htmlFor: id });
  let input;
  if (question.asks === "choice") {
    input = made("select", "", { autocomplete: "off" });
    input.append(made("option", "", { value: "" }), ...question.labels.map(text => made("option", text, { value: text })));
  } else {
    input = made("input", "", { autocomplete: "off" });
    if (question.asks === "number") input.placeholder = `from ${near(question.low)} to ${near(question.high)}`;
    if (question.asks === "ordered") input.placeholder = `from ${question.first} to ${question.last}`;
    if (question.asks === "word") input.placeholder = `at most ${question.length} letters`;
  }
  input.id = id;
  box.append(label, made("br"), input);
  return { box, input };
}

// Whoever comes next finds nothing: no answer, no random number, no report.
function forget(token = "") {
  current = null;
  $("form").reset();
  $("token").value = token;
  ["coins", "sent"].forEach(id => $(id).replaceChildren());
  $("entries").disabled = false;
  $("result").hidden = true;
  $("message").textContent = "";
}

function reportOf(survey, id, answers) {
  const token = $("token").value.trim();
  if (!TOKEN.test(token)) throw new Error(`A token has 64 digits, 0 to 9 and a to f. ${NOTHING} Copy yours again.`);
  if (localStorage.getItem(placeOf(id, token)) !== null) throw new Error(AGAIN);
  if (!allowed(survey, localStorage)) {
    throw new Error(`This browser has sent reports up to the privacy limit of this survey. ${NOTHING}`);
  }
  const drawn = randomize(survey, id, answers, systemWords());
  const body = JSON.stringify({ reports: [{ token, report: drawn.report }] });
  return { token, coins: drawn.coins, text: JSON.stringify(drawn.report), body, marked: false };
}

function show() {
  $("coins").replaceChildren(...current.coins.map(coin => made("li", `below ${coin.below}: ${coin.drawn}`)));
  $("sent").textContent = current.text;
  $("entries").disabled = true;
  $("result").hidden = false;
}

// A token is stored as used before its report leaves: should no reply come, only this page can send the report again.
function mark(survey, id) {
  if (current.marked) return;
  const place = placeOf(id, current.token);
  if (localStorage.getItem(place) !== null) throw new Error(AGAIN);
  try {
    localStorage.setItem(place, survey.epsilon);
  } catch {
    throw new Error("This browser cannot store that the token was used, so nothing was sent. Use another browser.");
  }
  current.marked = true;
}

async function send() {
  const sent = current;
  const reply = await fetch("reports", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: sent.body,
  });
  const message = reply.ok ? "Thank you: your report was counted." : (await reply.json()).error;
  if ((reply.ok || reply.status === 409) && current === sent) forget();
  return message;
}

const promise = survey => {
  const factor = Math.ceil(100 * Math.exp(near(survey.epsilon)) * (1 + 1e-12)) / 100;
  const shown = factor.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return `Every report is at most ${shown} times as likely under one answer as under any other.`;
};

function listen(survey, id) {
  const fields = survey.questions.map(field);
  $("questions").replaceChildren(...fields.map(({ box }) => box));
  $("promise").textContent = promise(survey);
  $("form").addEventListener("submit", event => {
    event.preventDefault();
    $("message").textContent = "";
    try {
      const answers = Object.fromEntries(survey.questions.map(({ name }, at) => [name, fields[at].input.value]));
      current ??= reportOf(survey, id, answers);
      show();
    } catch (problem) {
      $("message").textContent = problem.message;
    }
  });
  $("send").addEventListener("click", async () => {
    $("message").textContent = "";
    try {
      mark(survey, id);
    } catch (problem) {
      forget();
      $("message").textContent = problem.message;
      return;
    }
    $("send").disabled = true;
    const message = await send().catch(() => "The server was not reached. Send again: the same report is sent.");
    $("message").textContent = message;
    $("send").disabled = false;
  });
  $("again").addEventListener("click", () => forget());
}

// Another link was opened in this tab: its token starts afresh. The same one again keeps its report.
function arrive() {
  const token = takeToken();
  if (token && token !== current?.token) forget(token);
}

async function start(token) {
  try {
    forgetEarlier(localStorage);
    const [survey, { id }] = await Promise.all(["survey.json", "id.json"].map(async name => (await fetch(name)).json()));
    checkedId(survey, id);
    listen(survey, id);
    forget(token);
    window.addEventListener("hashchange", arrive);
    window.addEventListener("pagehide", () => forget());
    document.documentElement.dataset.ready = "yes";
  } catch (problem) {
    $("form").hidden = true;
    const stored = problem.name === "SecurityError" ? "This browser does not let a page store that a token was used."
      : "The survey could not be read. Load the page again.";
    $("message").textContent = problem.constructor === Error ? problem.message : `${stored} ${NOTHING}`;
    document.documentElement.dataset.ready = "no";
  }
}

if (typeof document !== "undefined" && $("form")) start(takeToken());

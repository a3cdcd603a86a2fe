// The page of a survey: check it, ask, randomize here, show what will be sent, send it once.
//
// Answers, random numbers and the report are in memory alone.  Stored is that a token was used: a digest of survey and
// token with the epsilon of the report, before it is first sent.  So a token is never randomized for twice.
// Of a memoized survey the permanent answers are stored, too, with the values that were used: they belong to the person.
import { belief, dots, filled, languageOf, ofHundred, questionSupport, spokenFor, supportOf } from "./explanation.js";
import { answerOf, fits, inputsOf, listed, made, monthName, monthText } from "./fields.js";
import { checkedId, fraction, sha256 } from "./published.js";
import { areMemos, codeOf, memosOf, nextValue, randomize, randomizeRound, systemWords } from "./randomizer.js";

const PREFIX = "incrowd.", PERMANENT = "incrowd.permanent.", FILE = "permanent.json", USED = "incrowd.used.", SPENT = "incrowd.spent", TOKEN = /^[0-9a-f]{64}$/;
const ABOUT = ["organizer", "contact", "aim"];

const $ = id => document.getElementById(id);
const near = text => { const [top, bottom] = fraction(text); return Number(top) / Number(bottom); };

let current = null;  // { token, coins, report, body, marked }: the report of the token in hand
let tape = { token: "", words: [] };  // what the generator drew for a token: answers that are changed meet the same chance
let permanent = null;  // the permanent answers of this person, and the text under which they are stored, if they are
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
  const stays = name => name.startsWith(USED) || name.startsWith(PERMANENT);
  names.filter(name => name.startsWith(PREFIX) && !stays(name)).forEach(name => storage.removeItem(name));
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
  const number = value => value.toLocaleString(language);
  const places = {
    choice: () => ({}),
    several: () => ({ most: number(Number(question.most)) }),
    number: () => ({ low: number(near(question.low)), high: number(near(question.high)) }),
    ordered: () => ({ low: number(Number(question.first)), high: number(Number(question.last)) }),
    month: () => ({ low: monthText(question.first, language), high: monthText(question.last, language) }),
    word: () => ({ length: question.length, alphabet: question.alphabet }),
  };
  return `${say(`hint-${question.asks}`, places[question.asks]())}${question.labels && unit ? ` (${unit})` : tail}`;
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
    const row = made("div", "", { className: listed(inputs) ? "row" : "" });
    row.append(...(listed(inputs) ? [input, labels[at]] : question.asks === "month" ? [labels[at], " ", input] : [input]));
    return row;
  });
  if (!listed(inputs) && question.asks !== "month") inputs[0].setAttribute("aria-labelledby", parts.legend.id);
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

function clearError(entry) {
  entry.error.textContent = "";
  entry.inputs.forEach(input => input.removeAttribute("aria-invalid"));
}

function refuse(entry) {
  entry.error.textContent = say("outside", { hint: hintOf(entry.question) });
  entry.inputs.forEach(input => input.setAttribute("aria-invalid", "true"));
}

const amount = number => (Math.ceil(1000 * number * (1 - 1e-12)) / 1000).toLocaleString(language, { maximumFractionDigits: 3 });

/** What several answers to one question reveal: each option by itself, and all that can differ. */
function explainOptions({ question, explained, pictures }) {
  const [plain] = question.randomizers, [own, rest] = supportOf(plain).map(ofHundred);
  const total = near(question.epsilon ?? survey.epsilon), width = Number(plain.width);
  explained.textContent = say("options", { own, rest, width, part: amount(total / width), total: amount(total) });
  pictures.append(dots(own, say("case-chosen")), dots(rest, say("case-not-chosen")));
}

/** How chance protects the answer that was given, with its own numbers; nothing before one is given. */
function explain(entry) {
  const { question, explained, pictures } = entry, given = answerOf(entry);
  entry.inputs.forEach(input => { input.disabled = entry.skip.checked; });
  pictures.replaceChildren();
  explained.textContent = "";
  if (question.asks === "several") { explainOptions(entry); return; }
  if (!fits(entry) || (given === "" && !entry.skip.checked)) return;
  if (question.asks !== "choice") {
    explained.textContent = say("belief", { own: belief(question.randomizers).toLocaleString(language) });
    return;
  }
  const at = question.labels.indexOf(given || question.skip), [own, rest] = questionSupport(question).map(ofHundred);
  const places = { answer: labelOf(question, at), other: labelOf(question, at === 0 ? 1 : 0), own, rest };
  explained.textContent = say(question.randomizers[0].family === "response" ? "says" : "counts", places);
  pictures.append(dots(own, say("case-own")), dots(rest, say("case-other")));
}

// Answers that were not sent can be changed; the report in hand is gone.
function reopen() {
  current = null;
  ["coins", "sent", "meaning"].forEach(id => $(id).replaceChildren());
  $("entries").disabled = false;
  $("result").hidden = true;
}

// Whoever comes next finds nothing: no answer, no random number, no report.
function forget(token = "") {
  tape = { token, words: [] };
  permanent = null;
  $("form").reset();
  $("token").value = token;
  linked = TOKEN.test(token);
  reopen();
  fields.forEach(entry => { clearError(entry); explain(entry); });
  showToken();
  tell();
}

function showToken() {
  $("token-box").hidden = linked;
  $("token-read").hidden = !linked;
  $("round").textContent = survey.rounds && linked ? say("round", { number: roundOf($("token").value), count: survey.rounds.count }) : "";
}

const problem = (...names) => Object.assign(new Error(names[0]), { names });

/** Words from the browser's generator, noted down: whoever changes answers before sending gets the same ones again. */
function wordsOf(token) {
  if (tape.token !== token) tape = { token, words: [] };
  const { words: noted } = tape, next = systemWords();
  let at = 0;
  return () => { if (at === noted.length) noted.push(next()); return noted[at++]; };
}

const memoized = () => survey.rounds?.form === "memoized";
const roundOf = token => parseInt(token.slice(0, 4), 16);
const memoPlace = id => PERMANENT + placeOf(id, FILE).slice(USED.length);

/** The permanent answers that this browser has, or new ones for all values, drawn before the first answer is read. */
function permanentOf(id) {
  const stored = localStorage.getItem(memoPlace(id));
  if (stored === null && localStorage.getItem(placeOf(id, FILE)) !== null) throw problem("permanent-lost", "nothing");
  if (stored !== null) return { stored, ...JSON.parse(stored) };
  if (!allowed(survey, localStorage)) throw problem("limit", "nothing");
  return permanent ?? { stored, memos: memosOf(survey, systemWords()), used: {} };
}

/** The report of this round, from permanent answers; which of them were used changes only when it is sent. */
function memoizedReport(id, answers, token) {
  permanent = permanentOf(id);
  const next = survey.questions.map(question => [question.name, nextValue(survey,
    permanent.used[question.name] ?? [], Number(codeOf(question, answers[question.name])))]);
  const values = Object.fromEntries(next.map(([name, { value }]) => [name, value]));
  const used = Object.fromEntries(next.map(([name, part]) => [name, part.used]));
  const drawn = randomizeRound(survey, id, permanent.memos, values, roundOf(token), wordsOf(token));
  return { ...drawn, before: permanent.stored, after: JSON.stringify({ memos: permanent.memos, used }) };
}

/** Go on with the permanent answers of another browser. */
function restore(id) {
  let kept = null;
  try { kept = JSON.parse($("permanent-code").value); } catch { /* it is none, which is said below */ }
  if (localStorage.getItem(memoPlace(id)) !== null || !areMemos(survey, kept)) { tell("permanent-wrong"); return; }
  localStorage.setItem(placeOf(id, FILE), survey.epsilon);
  localStorage.setItem(memoPlace(id), JSON.stringify({ memos: kept.memos, used: kept.used ?? {} }));
  permanent = null;
  reopen();
  showPermanent(id);
  tell("permanent-restored");
}

function showPermanent(id) {
  $("permanent").hidden = !memoized();
  $("permanent-code").value = memoized() ? localStorage.getItem(memoPlace(id)) ?? "" : "";
}

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
    wrong[0].inputs.find(input => !input.value || input.type !== "select-one")?.focus();
    throw problem("check-answers", "nothing");
  }
  if (localStorage.getItem(placeOf(id, token)) !== null) throw problem("token-used", "nothing");
  if (!memoized() && !allowed(survey, localStorage)) throw problem("limit", "nothing");
  if (survey.rounds && !(roundOf(token) >= 1 && roundOf(token) <= Number(survey.rounds.count))) throw problem("token-wrong", "nothing");
  const answers = Object.fromEntries(fields.map(entry => [entry.question.name, answerOf(entry)]));
  const drawn = memoized() ? memoizedReport(id, answers, token)
    : randomize(survey, id, answers, wordsOf(token), survey.rounds && roundOf(token));
  const body = JSON.stringify({ reports: [{ token, report: drawn.report }] });
  return { token, body, marked: false, ...drawn };
}

/** The parts of a report: of one question, or of all. */
const partsOf = ({ question, report, reports }) => (reports ? Object.entries(reports) : [[question, report]]);

/** What a report says about a question, in words. */
function meaningOf([name, report]) {
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
  if (memoized()) return coins.map(coin => say("coin", { last: `${BigInt(coin.below) - 1n}`, drawn: coin.drawn }));
  const total = survey.questions.length, several = total > 1 && survey.answers !== "all", [[name]] = partsOf(report);
  const question = survey.questions.find(each => each.name === name), [plain] = question.randomizers;
  const response = question.asks === "choice" && plain.family === "response", at = several ? 1 : 0;
  return coins.map((coin, place) => {
    const drawn = say("coin", { last: `${BigInt(coin.below) - 1n}`, drawn: coin.drawn });
    if (several && place === 0) return `${drawn} ${say("coin-question", { number: Number(coin.drawn) + 1, total })}`;
    return response && place === at ? `${drawn} ${say("coin-own", { own: plain.own })}` : drawn;
  });
}

function show() {
  $("meaning").replaceChildren(...partsOf(current.report).flatMap(meaningOf).map(line => made("p", line)));
  $("coins").replaceChildren(...coinLines(current).map(line => made("li", line)));
  $("sent").textContent = JSON.stringify(current.report);
  $("again").hidden = $("again-note").hidden = current.marked;
  $("entries").disabled = true;
  $("result").hidden = false;
}

/** Store the permanent answers before a report of them leaves; another tab may have stored others since. */
function storePermanent(id, { before, after }) {
  if (localStorage.getItem(memoPlace(id)) !== before) throw problem("permanent-changed", "nothing");
  if (before === null && !allowed(survey, localStorage)) throw problem("limit", "nothing");
  if (before === null) localStorage.setItem(placeOf(id, FILE), survey.epsilon);
  localStorage.setItem(memoPlace(id), after);
  permanent = null;
  showPermanent(id);
}

// A token is stored as used before its report leaves: should no reply come, only this page can send the report again.
// Two tabs take turns here, where the browser lets them; one of them finds the token used.
async function mark(id) {
  if (current.marked) return;
  const sent = current, place = placeOf(id, sent.token), alone = navigator.locks;
  const store = () => {
    if (localStorage.getItem(place) !== null) throw problem("token-used", "nothing");
    if (!memoized() && !allowed(survey, localStorage)) throw problem("limit", "nothing");
    try {
      if (memoized()) storePermanent(id, sent);
      localStorage.setItem(place, memoized() ? "0" : survey.epsilon);
    } catch (refusal) { throw refusal.names ? refusal : problem("cannot-store"); }
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
    show();
    tell(...await send().catch(() => ["not-reached"]));
  } catch (refusal) {
    forget();
    tell(...refusal.names);
  }
  $("send").disabled = false;
  $("message").focus();
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
  const kind = memoized() ? "memoized" : survey.rounds ? "one-round" : "";
  $("rounds").textContent = kind && say(kind, { count: survey.rounds.count });
  document.querySelector("[data-say=stored-here]").textContent = say(memoized() ? "stored-permanent" : "stored-here");
  $("promise").textContent = say(memoized() ? "factor-rounds" : "factor", { factor: factor(), epsilon: amount(near(survey.epsilon)) });
  $("several").textContent = severalText();
  $("shuffled").textContent = survey.shuffled === null ? "" : say("shuffled", { number: Number(survey.shuffled.batch).toLocaleString(language) });
  $("unreviewed").hidden = words.reviewed.includes(language);
  fields.forEach(speakCard);
  showToken();
  if (current !== null) show();
  if (message !== null) tell(...message);
}

/** Whether one answer is picked or all are sent; then how much each reveals, and all of them together. */
function severalText() {
  if (survey.questions.length === 1) return "";
  if (survey.answers !== "all") return say("one-question");
  const parts = survey.questions.map(question => amount(near(question.epsilon))).join(" + ");
  return say("all-answers", { sum: `${parts} = ${amount(near(survey.epsilon))}` });
}

function speakMonth({ inputs: [month], labels }) {
  ["month", "year"].forEach((name, at) => { labels[at].textContent = say(name); });
  Array.from(month.options).slice(1).forEach((option, at) => { option.textContent = monthName(at, language); });
}

function speakCard(entry, at) {
  const { question, legend, number, hint, inputs, labels, skips, skipped } = entry;
  legend.textContent = textOf(question);
  number.textContent = fields.length > 1 ? say("card", { number: at + 1, total: fields.length }) : "";
  hint.textContent = hintOf(question);
  labels.forEach((label, place) => { label.textContent = question.labels ? labelOf(question, place) : ""; });
  if (question.asks === "month") speakMonth(entry);
  else if (inputs[0].tagName === "SELECT") {
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
  $("restore").addEventListener("click", () => restore(id));
  $("again").addEventListener("click", () => { reopen(); tell(); fields[0].inputs[0].focus(); });
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
    showPermanent(id);
    window.addEventListener("hashchange", arrive);
    window.addEventListener("pagehide", () => forget());
    $("page").hidden = $("languages").hidden = false;
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

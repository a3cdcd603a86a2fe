// The survey playground: answers are randomized here, by the same script as in real surveys; only reports are sent.
import { randomize, systemWords } from "./randomizer.js";

const { survey, id } = JSON.parse(document.getElementById("survey").textContent);
const $ = (name) => document.getElementById(name);
const made = (tag, text, kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });
const numbers = new Intl.NumberFormat("en");

$("own").addEventListener("submit", (event) => {
  event.preventDefault();
  $("message").textContent = "";
  try {
    const fields = [...document.querySelectorAll("[data-answer]")];
    const answers = Object.fromEntries(fields.map((field) => [field.dataset.answer, field.value]));
    const drawn = randomize(survey, id, answers, systemWords());
    $("draws").replaceChildren(...drawn.coins.map((coin) => made("span", `${coin.drawn} of ${coin.below}`, "draw")));
    $("sent").textContent = JSON.stringify(drawn.report, null, 1);
    const question = survey.questions.find((each) => each.name === drawn.report.question);
    const plainly = question.asks === "choice" && question.randomizers[0].family === "response";
    const told = plainly && question.labels[drawn.report.report];
    if (told) $("sent").append(`\n(reads: ${told})`);
    $("randomized").hidden = false;
  } catch (problem) {
    $("message").textContent = problem.message;
  }
});

const crowd = $("crowd");
if (crowd) {
  const shown = () => {
    $("people-now").textContent = numbers.format($("people").value);
    $("share-now").textContent = `${$("share").value} %`;
  };
  crowd.addEventListener("input", shown);
  shown();

  // So many people answer the first label, the others share the rest; the same share for every question.
  const invented = (people, share) =>
    Array.from({ length: people }, (_, at) => {
      const first = at < Math.round((people * share) / 100);
      const of = (labels) => labels[first ? 0 : 1 + (at % (labels.length - 1))];
      return Object.fromEntries(survey.questions.map((each) => [each.name, of(each.labels)]));
    });

  crowd.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [people, share] = [Number($("people").value), Number($("share").value)];
    const names = survey.questions.map((each) => each.name);
    const words = systemWords();
    const reports = invented(people, share).map((answers) => {
      const { report } = randomize(survey, id, answers, words);
      return [names.indexOf(report.question), report.report];
    });
    $("counted").textContent = "Counting …";
    const form = new URLSearchParams(new FormData(crowd));
    form.set("reports", JSON.stringify(reports));
    const headers = { "x-incrowd-mark": document.body.dataset.mark };
    try {
      const reply = await fetch(crowd.dataset.action, { method: "POST", headers, body: form });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      if (!reply.ok) throw new Error(page.querySelector(".problem")?.textContent.trim() || "The reports were not stored.");
      $("estimates").replaceChildren(...page.getElementById("estimates").childNodes);
      told(people, share);
    } catch (problem) {
      $("counted").textContent = problem.message;
    }
  });
}

// What only this browser knows: the true shares, drawn beside the estimates.
function told(people, share) {
  const exact = Math.round((people * share) / 100) / people;
  $("counted").textContent = `${numbers.format(people)} reports were counted.`;
  $("truth").textContent = `The true share is ${(100 * exact).toFixed(1)} % “${survey.questions[0].labels[0]}” (thick line). Only this browser knows it.`;
  $("truth").hidden = false;
  document.querySelectorAll("#estimates svg.chart").forEach((svg) => {
    const { from, to, left, wide } = svg.dataset;
    const x = `${Number(left) + (Number(wide) * (exact - from)) / (to - from)}%`;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 10, y2: 32, class: "truth" })) line.setAttribute(name, value);
    svg.append(line);
  });
}

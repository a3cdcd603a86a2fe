// How chance protects an answer, in words and in a small picture: shares of one hundred cases, from the published weights.

const HUNDRED = 100n, SVG = "http://www.w3.org/2000/svg", DOTS = 20;

/** A text with its {places} filled in. */
export const filled = (text, places = {}) => text.replace(/\{(\w+)\}/g, (whole, name) => `${places[name] ?? whole}`);

/** The language of a browser that a catalog has, or its first one. */
export function languageOf(wanted, available) {
  const codes = wanted.map(tag => tag.toLowerCase().split("-")[0]);
  return codes.find(code => available.includes(code)) ?? available[0];
}

/** How often a report speaks for a value if it is the answer, and if another one is: two fractions. */
export function supportOf(plain) {
  const { size, own, other, width } = Object.fromEntries(
    Object.entries(plain).filter(([name]) => name !== "family").map(([name, text]) => [name, BigInt(text)]));
  switch (plain.family) {
    case "response": { const all = own + (size - 1n) * other; return [[own, all], [other, all]]; }
    case "options":
    case "symmetric-unary": return [[own, own + other], [other, own + other]];
    case "optimal-unary": return [[1n, 2n], [other, own + other]];
    case "local-hashing": return [[own, own + (width - 1n) * other], [1n, width]];
    case "hadamard": return [[own, own + other], [1n, 2n]];
    case "subset": {
      const all = width * own + (size - width) * other, inside = width * own;
      return [[inside, all], [inside * (width - 1n) + (all - inside) * width, all * (size - 1n)]];
    }
    default: return null;
  }
}

/** The same of a question: where it is memoized, of a report that randomizes a permanent answer once more. */
export function questionSupport({ randomizers }) {
  const [[own, all], [other]] = supportOf(randomizers[0]);
  if (randomizers.length < 2 || randomizers[0].size !== randomizers[1].size) return supportOf(randomizers[0]);
  const [[same, of], [turned]] = supportOf(randomizers[1]);
  const wrong = randomizers[0].family === "response"
    ? other * same + own * turned + (BigInt(randomizers[0].size) - 2n) * other * turned
    : other * same + (all - other) * turned;
  return [[own * same + (all - own) * turned, all * of], [wrong, all * of]];
}

/** Of one hundred cases: rounded to the nearest one, but a part below one half is shown with two decimals. */
export function ofHundred([top, bottom]) {
  const nearest = (2n * HUNDRED * top + bottom) / (2n * bottom);
  if (nearest > 0n && nearest < HUNDRED) return `${nearest}`;
  const fine = (20000n * top + bottom) / (2n * bottom);
  return `${Number(fine) / 100}`;
}

/** How sure a reader can be, at most, who held two answers for equally likely: in percent, rounded up. */
export function belief(levels) {
  const sure = levels.map(plain => {
    const power = plain.family === "symmetric-unary" ? 2n : 1n, own = BigInt(plain.own) ** power;
    const all = own + BigInt(plain.other) ** power;
    return (10n * HUNDRED * own + all - 1n) / all;
  });
  return Number(sure.reduce((one, next) => (one > next ? one : next))) / 10;
}

const shape = (name, attributes) => {
  const part = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => part.setAttribute(key, value));
  return part;
};

/** One hundred dots, of which some are filled; words beside it say the same, so it is hidden from readers of screens. */
export function dots(text, caption) {
  const number = Math.round(Number(text)), picture = shape("svg", { viewBox: "0 0 200 50", "aria-hidden": "true" });
  for (let at = 0; at < 100; at++) {
    const place = { cx: 5 + 10 * (at % DOTS), cy: 5 + 10 * Math.floor(at / DOTS), r: 4 };
    picture.append(shape("circle", { ...place, class: at < number ? "full" : "open" }));
  }
  const box = document.createElement("figure"), line = document.createElement("figcaption");
  line.textContent = `${text} / 100: ${caption}`;
  box.append(picture, line);
  return box;
}

/** The labels that a report speaks for, or null where that takes more than reading its bits. */
export function spokenFor(question, report) {
  const [{ family }] = question.randomizers;
  if (!question.labels) return null;
  if (family === "response") return [question.labels[report]];
  if (!["subset", "symmetric-unary", "optimal-unary", "options"].includes(family)) return null;
  return question.labels.filter((_, at) => (parseInt(report.slice(2 * (at >> 3), 2 * (at >> 3) + 2), 16) >> (at & 7)) & 1);
}

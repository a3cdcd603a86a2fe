// A survey is checked before anything is randomized, as the Python client does it: its shape, each weight against the
// stated epsilon, and the digest of all that is published.  Numbers are exact: whole numbers and fractions of them.

import { monthOf } from "./randomizer.js";

const DOMAIN = "incrowd survey 1", NOTHING = "Nothing was randomized or sent.";
const LARGEST = 1n << 62n, MOST = 1n << 48n, LONGEST = 1n << 16n, FINEST = 1n << 20n, SEEDS = 1n << 53n, MOST_OPTIONS = 32n;
const LARGEST_EPSILON = 28n, FINEST_EPSILON = 10n ** 40n, SMALLEST_DELTA = 10n ** 20n, LARGEST_BATCH = 10n ** 8n;
const TERMS = 60n, TERMS_EACH = 8n, DIGITS = 1000;
// Finite fields that are not of prime size: the prime, the degree, and the first irreducible polynomial.
const FIELDS = {
  4: [2, 2, 7], 8: [2, 3, 11], 9: [3, 2, 10], 16: [2, 4, 19], 25: [5, 2, 27], 27: [3, 3, 34], 32: [2, 5, 37],
  49: [7, 2, 50], 64: [2, 6, 67], 81: [3, 4, 86], 121: [11, 2, 122], 125: [5, 3, 131], 128: [2, 7, 131],
  169: [13, 2, 171], 243: [3, 5, 250], 256: [2, 8, 283],
};

class NotPublished extends Error {}
const refused = (say, text) => Object.assign(new Error(`${text} ${NOTHING}`), { say });
const require = holds => { if (!holds) throw new NotPublished(); };

/** The SHA-256 of a text in UTF-8, as hexadecimal digits; it also works where a page has no secure context. */
export function sha256(text) {
  const bytes = new TextEncoder().encode(text), length = ((bytes.length + 8) >> 6) + 1;
  const words = new Uint32Array(16 * length), state = Uint32Array.from(initial(2)), keys = initial(3);
  bytes.forEach((byte, at) => { words[at >> 2] |= byte << (24 - 8 * (at & 3)); });
  words[bytes.length >> 2] |= 0x80 << (24 - 8 * (bytes.length & 3));
  words[16 * length - 2] = Math.floor(bytes.length / 2 ** 29);
  words[16 * length - 1] = bytes.length << 3;
  for (let at = 0; at < words.length; at += 16) compress(state, keys, words.subarray(at, at + 16));
  return Array.from(state, word => word.toString(16).padStart(8, "0")).join("");
}

const PRIMES = Array.from({ length: 311 }, (_, at) => at + 1)
  .filter(number => number > 1 && !Array.from({ length: number - 2 }, (_, at) => at + 2).some(by => number % by === 0));

/** The first 32 binary digits behind the point of the roots of primes, square or cubic, by whole numbers alone. */
function initial(power) {
  return PRIMES.slice(0, power === 2 ? 8 : 64).map(prime => {
    const limit = BigInt(prime) << BigInt(32 * power);
    let root = 0n;
    for (let bit = 1n << 36n; bit; bit >>= 1n) if ((root | bit) ** BigInt(power) <= limit) root |= bit;
    return Number(root & 0xffffffffn);
  });
}

const turned = (word, by) => (word >>> by) | (word << (32 - by));

function compress(state, keys, block) {
  const words = Uint32Array.from({ length: 64 }, (_, at) => block[at] ?? 0);
  for (let at = 16; at < 64; at++) {
    const [far, near] = [words[at - 15], words[at - 2]];
    words[at] = words[at - 16] + (turned(far, 7) ^ turned(far, 18) ^ (far >>> 3))
      + words[at - 7] + (turned(near, 17) ^ turned(near, 19) ^ (near >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let at = 0; at < 64; at++) {
    const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + keys[at] + words[at];
    const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, at) => { state[at] += word; });
}

const byCodePoint = (left, right) => {
  const [one, other] = [left, right].map(text => [...text].map(letter => letter.codePointAt(0)));
  const at = one.findIndex((point, place) => point !== other[place]);
  return at < 0 ? one.length - other.length : one[at] - (other[at] ?? -1);
};

/** The one JSON text of a value: keys sorted by code point, no spaces, nothing escaped that need not be. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") {
    require(typeof value !== "string" || !/\p{Surrogate}/u.test(value));
    return JSON.stringify(value);
  }
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map(key => `${canonical(key)}:${canonical(value[key])}`).join(",")}}`;
}

/** The digest of all that a survey publishes: reports name it. */
export const surveyId = survey => sha256(`${DOMAIN}\n${canonical(survey)}`);

const isText = value => typeof value === "string";
const isMapping = value => value !== null && typeof value === "object" && !Array.isArray(value);

function keysOf(value, ...names) {
  require(isMapping(value) && canonical(Object.keys(value).sort()) === canonical([...names].sort()));
}

/** A whole number, written in the one way that Python writes it. */
function whole(text) {
  require(isText(text) && text.length < DIGITS && /^(0|-?[1-9][0-9]*)$/.test(text));
  return BigInt(text);
}

/** A fraction in lowest terms, as Python writes it, as top and bottom. */
export function fraction(text) {
  require(isText(text) && text.length < DIGITS && /^(0|-?[1-9][0-9]*(\/[1-9][0-9]*)?)$/.test(text));
  const [top, bottom] = text.includes("/") ? text.split("/").map(BigInt) : [BigInt(text), 1n];
  let [one, other] = [top < 0n ? -top : top, bottom];
  while (other) [one, other] = [other, one % other];
  require(one === 1n || bottom === 1n);
  require(bottom !== 1n || !text.includes("/"));
  return [top, bottom];
}

const above = ([top, bottom], [other, by]) => top * by > other * bottom;

/** A partial sum of the exponential series, which lies below e^epsilon: 1 + epsilon/1 (1 + epsilon/2 (1 + ...)). */
export function exponentialBelow([top, bottom]) {
  let sum = 1n, parts = 1n;
  for (let number = TERMS + TERMS_EACH * ((top + bottom - 1n) / bottom) - 1n; number > 0n; number--) {
    parts *= number * bottom;
    sum = parts + top * sum;
  }
  return [sum, parts];
}

function field(width) {
  if (FIELDS[width]) return FIELDS[width];
  require(PRIMES.includes(Number(width)) && width < 256n);
  return [width, 1, width];
}

function hashing({ size, own, other, width }, plain) {
  const [prime, degree, modulus] = field(width);
  require(plain.prime === `${prime}` && plain.degree === `${degree}` && plain.modulus === `${modulus}`);
  let seeds = width;
  while (seeds < size) seeds *= width;
  require(seeds * width <= SEEDS);
  return own + (width - 1n) * other;
}

function subset({ size, own, other, width }) {
  require(size <= LONGEST && width >= 1n && width < size);
  return width * own + (size - width) * other;
}

function options({ size, own, other, width }) {
  require(size <= MOST_OPTIONS && width >= 2n && width <= size);
  return own + other;
}

const pair = ({ own, other }) => own + other;
const bits = told => { require(told.size <= LONGEST); return pair(told); };
const sign = ({ size, own, other }) => 2n * size * (own + other);

function windowed({ size, own, other, width }) {
  require(width >= 0n && width <= 4n * FINEST);
  return own * (2n * width + 1n) + 2n * other * size;
}

function mixture(told) {
  require(told.share >= 0n && told.share <= 1024n);
  return [windowed(told), sign(told)].reduce((one, other) => (one > other ? one : other));
}

// What each family adds to size, own and other, and the largest number below which it draws.
const CATEGORICAL = {
  "response": [[], ({ size, own, other }) => own + (size - 1n) * other],
  "symmetric-unary": [[], bits],
  "optimal-unary": [[], bits],
  "local-hashing": [["width"], hashing, ["prime", "degree", "modulus"]],
  "hadamard": [[], pair],
  "subset": [["width"], subset],
};
const OPTIONS = { "options": [["width"], options] };
const NUMERIC = { "duchi": [[], sign], "window": [["width"], windowed], "mixture": [["width", "share"], mixture] };

/** The size of a randomizer, and how much likelier a report is for one value than for another, as top and bottom. */
function randomizer(plain, families) {
  require(isMapping(plain) && isText(plain.family) && Object.hasOwn(families, plain.family));
  const [extra, total, derived = []] = families[plain.family], names = ["size", "own", "other", ...extra];
  keysOf(plain, "family", ...names, ...derived);
  const told = Object.fromEntries(names.map(name => [name, whole(plain[name])]));
  require(told.other > 0n && told.own >= told.other);
  require(told.size >= (families === NUMERIC ? 1n : 2n) && told.size <= (families === NUMERIC ? FINEST : MOST));
  require(total(told, plain) <= LARGEST);
  const power = { "symmetric-unary": 2n, "options": told.width }[plain.family] ?? 1n;
  return { width: told.width, size: told.size, ratio: [told.own ** power, told.other ** power] };
}

const MOST_MEMOS = 64n, MOST_ROUNDS = 4000n;

/** The permanent and the instantaneous randomizer of a memoized question: all its different answers lose together. */
function twice(question, rounds) {
  const [permanent, again] = question.randomizers.map(plain => randomizer(plain, CATEGORICAL)), { length } = question.randomizers;
  require(length === 2 && ["response", "symmetric-unary"].includes(question.randomizers[0].family));
  require(question.randomizers[0].family === question.randomizers[1].family && permanent.size === again.size);
  const distinct = rounds.distinct < permanent.size ? rounds.distinct : permanent.size;
  require(permanent.size <= MOST_MEMOS && distinct >= 1n && distinct <= rounds.count);
  return { size: permanent.size, ratio: permanent.ratio.map(part => part ** distinct) };
}

/** The rounds of a survey, or undefined; `distinct` is there where people keep permanent answers. */
function roundsOf(survey) {
  if (!Object.hasOwn(survey, "rounds")) return undefined;
  const memoized = isMapping(survey.rounds) && survey.rounds.form === "memoized";
  keysOf(survey.rounds, "count", "form", ...memoized ? ["distinct"] : []);
  const count = whole(survey.rounds.count), distinct = memoized ? whole(survey.rounds.distinct) : undefined;
  require(memoized || survey.rounds.form === "one round per person");
  require(count >= 2n && count <= MOST_ROUNDS && survey.shuffled === null);
  require(!memoized || survey.answers === "all" || survey.questions.length === 1);
  return { count, distinct };
}

const single = (question, families) => {
  require(question.randomizers.length === 1);
  return randomizer(question.randomizers[0], families);
};

function tree(question, size) {
  const { steps, randomizers } = question;
  require(Array.isArray(steps) && steps.length === randomizers.length && steps.at(-1) === "1");
  return randomizers.map((plain, at) => {
    const step = whole(steps[at]), level = randomizer(plain, CATEGORICAL);
    require(step > 0n && level.size === (size + step - 1n) / step);
    return level;
  });
}

const ASKS = {
  choice: [["labels"], (question, rounds) => {
    const memoized = rounds?.distinct !== undefined, { labels } = question;
    const level = memoized ? twice(question, rounds) : single(question, CATEGORICAL);
    require(Array.isArray(labels) && labels.every(isText) && new Set(labels).size === labels.length);
    require(level.size === BigInt(labels.length));
    return [level];
  }],
  several: [["labels", "most"], question => {
    const { labels } = question, level = single(question, OPTIONS), most = whole(question.most);
    require(Array.isArray(labels) && labels.every(isText) && new Set(labels).size === labels.length);
    require(labels.every(label => label && !/^ | $|;/.test(label)));
    require(level.size === BigInt(labels.length) && most >= 1n && most <= level.size);
    require(level.width === (2n * most < level.size ? 2n * most : level.size));
    return [level];
  }],
  number: [["low", "high"], question => {
    require(above(fraction(question.high), fraction(question.low)));
    return [single(question, NUMERIC)];
  }],
  ordered: [["first", "last", "steps"], question => {
    const [first, last] = [whole(question.first), whole(question.last)];
    require(first <= MOST && first >= -MOST && last > first);
    return tree(question, last - first + 1n);
  }],
  month: [["first", "last", "steps"], question => {
    require([question.first, question.last].every(text => isText(text) && text.length === 7));
    const [first, last] = [question.first, question.last].map(monthOf);
    require(first !== null && last !== null && last > first);
    return tree(question, last - first + 1n);
  }],
  word: [["alphabet", "length", "steps"], question => {
    const { alphabet } = question, length = whole(question.length);
    require(isText(alphabet) && alphabet && !/[\ud800-\udfff]/.test(alphabet) && new Set(alphabet).size === alphabet.length);
    require(length >= 1n && length <= 48n);
    return tree(question, BigInt(alphabet.length + 1) ** length);
  }],
};

function levelsOf(question, rounds) {
  require(isMapping(question) && isText(question.asks) && Object.hasOwn(ASKS, question.asks));
  require(rounds?.distinct === undefined || question.asks === "choice");
  const [names, levels] = ASKS[question.asks];
  const skip = Object.hasOwn(question, "skip") ? ["skip"] : [], part = Object.hasOwn(question, "epsilon") ? ["epsilon"] : [];
  keysOf(question, "name", "text", "asks", "randomizers", ...names, ...skip, ...part);
  require(!skip.length || question.asks !== "several");
  require(isText(question.name) && isText(question.text) && Array.isArray(question.randomizers));
  if (skip.length) require(question.asks === "choice" ? question.labels?.includes?.(question.skip) : question.skip === "random");
  return levels(question, rounds);
}

function checkTexts(texts) {
  require(isMapping(texts) && Object.keys(texts).length && Object.keys(texts).every(code => /^[a-z]{2,3}$/.test(code)));
  require(Object.values(texts).every(part => isMapping(part) && Object.values(part).every(isText)));
}

function checkShape(survey) {
  const purpose = isMapping(survey) && Object.hasOwn(survey, "purpose") ? ["purpose"] : [];
  const texts = isMapping(survey) && Object.hasOwn(survey, "texts") ? ["texts"] : [];
  const answers = isMapping(survey) && Object.hasOwn(survey, "answers") ? ["answers"] : [];
  const people = isMapping(survey) && Object.hasOwn(survey, "people") ? ["people"] : [];
  const rounds = isMapping(survey) && Object.hasOwn(survey, "rounds") ? ["rounds"] : [];
  const optional = [...purpose, ...texts, ...answers, ...people, ...rounds];
  keysOf(survey, "survey", "name", "title", "epsilon", "questions", "shuffled", "per_person", "scripts", ...optional);
  require(!answers.length || survey.answers === "all");
  if (texts.length) checkTexts(survey.texts);
  require(survey.survey === 1 && [survey.name, survey.title, ...[...purpose, ...people].map(name => survey[name])].every(isText));
  require(Array.isArray(survey.questions) && survey.questions.length);
  require(isMapping(survey.scripts) && Object.keys(survey.scripts).length && Object.values(survey.scripts).every(isText));
  if (survey.per_person !== null) require(!above(fraction(survey.epsilon), fraction(survey.per_person)));
  if (survey.shuffled === null) return;
  keysOf(survey.shuffled, "batch", "honest", "delta");
  const [batch, honest] = [whole(survey.shuffled.batch), whole(survey.shuffled.honest)];
  const delta = fraction(survey.shuffled.delta);
  require(honest >= 2n && honest <= batch && batch <= LARGEST_BATCH);
  require(!above([1n, SMALLEST_DELTA], delta) && above([1n, 1n], delta));
}

function checkEpsilon(text) {
  const [top, bottom] = fraction(text);
  require(top > 0n && top <= LARGEST_EPSILON * bottom && bottom <= FINEST_EPSILON);
}

/** Where every question is answered, each has a part of epsilon, loses no more, and the parts add up. */
function checkParts(survey, ratios) {
  const parts = survey.questions.map(question => question.epsilon);
  if (survey.answers !== "all") { require(parts.every(part => part === undefined)); return; }
  parts.forEach(checkEpsilon);
  const [top, bottom] = parts.map(fraction).reduce(([one, by], [other, of]) => [one * of + other * by, by * of]);
  const [whole_, of] = fraction(survey.epsilon);
  require(top * of === whole_ * bottom);
  require(!parts.some((part, at) => above(ratios[at], exponentialBelow(fraction(part)))));
}

/** The largest ratio of a survey; anything that no collector publishes is refused. */
function largestRatio(survey) {
  checkShape(survey);
  checkEpsilon(survey.epsilon);
  const names = survey.questions.map(question => question.name), larger = (one, other) => (above(other, one) ? other : one);
  const rounds = roundsOf(survey);
  const ratios = survey.questions.map(question => levelsOf(question, rounds).map(level => level.ratio).reduce(larger));
  require(new Set(names).size === names.length);
  checkParts(survey, ratios);
  const times = ([top, bottom], [other, by]) => [top * other, bottom * by];
  const largest = ratios.reduce(survey.answers === "all" ? times : larger);
  require(survey.shuffled === null || above(largest, [1n, 1n]));
  return largest;
}

/** Refuse a survey whose shape, weights or digest are not what its collector says; return its digest. */
export function checkedId(survey, id) {
  let largest, own;
  try {
    largest = largestRatio(survey);
    own = surveyId(survey);
  } catch (problem) {
    if (!(problem instanceof NotPublished)) throw problem;
    throw refused("not-a-survey", "This is not a survey as a collector publishes it.");
  }
  if (above(largest, exponentialBelow(fraction(survey.epsilon)))) {
    throw refused("reveals", "This survey would reveal more about your answer than it states.");
  }
  if (own !== id) throw refused("another", "This survey is not the one that its collector names.");
  return own;
}

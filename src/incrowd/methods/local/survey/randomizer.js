// Randomize answers by whole weights, draw for draw as the Python package does: the same words give the same reports.
// A survey is what /survey.json publishes; words() gives uniform 64-bit words as BigInt.

const WORD = 64n, PARTS = 1n << 20n, SHARES = 1024n, BYTES = 7;

/** Uniform words from the browser's generator. */
export function systemWords() {
  return () => crypto.getRandomValues(new BigUint64Array(1))[0];
}

/** Coins that note down what was drawn, so that a page can show it. */
export function coinsOf(words) {
  const noted = [];
  const bits = number => BigInt(number.toString(2).length);
  const below = bound => {
    if (bound === 1n) return 0n;
    const shift = WORD - bits(bound - 1n);
    let drawn = words() >> shift;
    while (drawn >= bound) drawn = words() >> shift;
    if (noted.length < 200) noted.push({ below: bound.toString(), drawn: drawn.toString() });
    return drawn;
  };
  // coins that come up true with chance top / bottom: endless words below the digits of the chance
  const tosses = (top, bottom, size) => {
    const limit = (top << WORD) / bottom;
    if (limit >> WORD) return Array(size).fill(true);
    const drawn = Array.from({ length: size }, () => words());
    return drawn.map(word => {
      let width = WORD, digits = limit;
      while (word === digits) {
        width += WORD;
        digits = ((top << width) / bottom) & ((1n << WORD) - 1n);
        word = words();
      }
      return word < digits;
    });
  };
  const flips = (top, bottom, size) => {
    const limit = Number((256n * top) / bottom), rest = 256n * top - BigInt(limit) * bottom, drawn = [];
    for (let at = 0; at < size; at += BYTES) {
      let word = below(1n << 56n);
      for (let place = 0; place < BYTES; place++, word >>= 8n) drawn.push(Number(word & 255n));
    }
    const result = drawn.slice(0, size).map(byte => byte < limit);
    const ties = rest ? [...result.keys()].filter(at => drawn[at] === limit) : [];
    const tossed = tosses(rest, bottom, ties.length);
    ties.forEach((at, number) => { result[at] = tossed[number]; });
    return result;
  };
  return { below, flips, noted };
}

/** Answer with the own place, or with another one. */
function answered(told, size, value, coins) {
  const drawn = coins.below(told.own + (size - 1n) * told.other) - told.own;
  if (drawn < 0n) return value;
  const other = drawn / told.other;
  return other + (other >= value ? 1n : 0n);
}

/** Bits as hexadecimal digits, the first in the lowest bit of the first byte. */
function hexadecimal(bits) {
  let text = "";
  for (let at = 0; at < bits.length; at += 8) {
    let byte = 0;
    for (let place = 0; place < 8 && at + place < bits.length; place++) byte |= bits[at + place] ? 1 << place : 0;
    text += byte.toString(16).padStart(2, "0");
  }
  return text;
}

function subset(told, value, coins) {
  const size = Number(told.size), width = Number(told.width);
  const inside = coins.below(told.width * told.own + (told.size - told.width) * told.other) < told.width * told.own;
  const others = Array(size - 1).fill(false), most = size - 1;
  for (let last = most - (width - (inside ? 1 : 0)); last < most; last++) {
    const drawn = Number(coins.below(BigInt(last + 1)));
    others[others[drawn] ? last : drawn] = true;
  }
  const at = Number(value), bits = [...others, false];
  bits[size - 1] = bits[at];
  bits[at] = inside;
  return hexadecimal(bits);
}

const digitsOf = (number, base, places) => Array.from({ length: places }, () => {
  const digit = number % base;
  number /= base;
  return digit;
});
const numberOf = (digits, base) => digits.reduceRight((sum, digit) => sum * base + digit, 0n);

/** The product of two elements of a finite field. */
function times(told, x, y) {
  const degree = Number(told.degree), { prime } = told;
  const [left, right] = [x, y].map(each => digitsOf(each, prime, degree));
  const reducer = digitsOf(told.modulus, prime, degree + 1), found = Array(2 * degree).fill(0n);
  left.forEach((one, i) => right.forEach((other, j) => { found[i + j] = (found[i + j] + one * other) % prime; }));
  for (let place = found.length - 1; degree > 1 && place >= degree; place--) {
    const factor = found[place];
    for (let j = 0; j < degree; j++) {
      const at = place - degree + j;
      found[at] = (((found[at] - factor * reducer[j]) % prime) + prime) % prime;
    }
  }
  return numberOf(found.slice(0, degree), prime);
}

function plus(told, x, y) {
  const degree = Number(told.degree), right = digitsOf(y, told.prime, degree);
  return numberOf(digitsOf(x, told.prime, degree).map((digit, at) => (digit + right[at]) % told.prime), told.prime);
}

function hashed(told, value, coins) {
  let places = 1, seeds = told.width;
  while (seeds < told.size) { seeds *= told.width; places++; }
  const seed = coins.below(seeds);
  const [left, right] = [seed, value].map(each => digitsOf(each, told.width, places));
  const own = left.map((digit, at) => times(told, digit, right[at])).reduce((sum, term) => plus(told, sum, term));
  return Number(seed * told.width + answered(told, told.width, own, coins));
}

const ones = number => [...number.toString(2)].filter(digit => digit === "1").length;

function hadamard(told, value, coins) {
  const columns = 1n << BigInt(told.size.toString(2).length);
  const minus = coins.below(told.own + told.other) >= told.own ? 1 : 0;
  const drawn = coins.below(columns / 2n), row = value + 1n, lowest = row & -row;
  const low = drawn & (lowest - 1n), column = low | ((drawn - low) << 1n);
  return Number(ones(column & row) % 2 === minus ? column : column | lowest);
}

function unary(told, value, coins, optimal) {
  const bits = coins.flips(told.other, told.own + told.other, Number(told.size)), at = Number(value);
  bits[at] = optimal ? coins.below(2n) === 1n : !bits[at];
  return hexadecimal(bits);
}

function options(told, value, coins) {
  const bits = coins.flips(told.other, told.own + told.other, Number(told.size));
  return hexadecimal(bits.map((bit, at) => bit !== (((value >> BigInt(at)) & 1n) === 1n)));
}

function duchi(told, value, coins) {
  const drawn = coins.below(2n * told.size * (told.own + told.other));
  return drawn < told.own * (told.size + value) + told.other * (told.size - value) ? 1n : -1n;
}

function windowed(told, value, coins) {
  const span = 2n * told.width + 1n, drawn = coins.below(told.own * span + 2n * told.other * told.size);
  const beyond = drawn - told.own * span;
  if (beyond < 0n) return value - told.width + drawn / told.own;
  const place = beyond / told.other - told.size - told.width;
  return place + (place >= value - told.width ? span : 0n);
}

function mixture(told, value, coins) {
  if (coins.below(SHARES) < told.share) return windowed(told, value, coins);
  return duchi(told, value, coins) * (told.size + told.width + 1n);
}

const FAMILIES = {
  "response": (told, value, coins) => Number(answered(told, told.size, value, coins)),
  "symmetric-unary": (told, value, coins) => unary(told, value, coins, false),
  "optimal-unary": (told, value, coins) => unary(told, value, coins, true),
  "local-hashing": hashed,
  "hadamard": hadamard,
  "subset": subset,
  "options": options,
  "duchi": (told, value, coins) => Number(duchi(told, value, coins)),
  "window": (told, value, coins) => Number(windowed(told, value, coins)),
  "mixture": (told, value, coins) => Number(mixture(told, value, coins)),
};

const weights = plain => Object.fromEntries(
  Object.entries(plain).map(([name, text]) => [name, name === "family" ? text : BigInt(text)]));

/** A fraction as text, such as 1/2 or -3, as top and bottom. */
function fraction(text) {
  const [top, bottom = "1"] = text.split("/");
  return [BigInt(top), BigInt(bottom)];
}

const floor = (top, bottom) => (top >= 0n ? top / bottom : -((bottom - 1n - top) / bottom));

/** The number of the month of a date, or null. */
export function monthOf(text) {
  const match = /^([0-9]{4})-(0[1-9]|1[0-2])(-[0-9]{2})?$/.exec(text);
  return match && 12n * BigInt(match[1]) + BigInt(match[2]) - 1n;
}

/** How many whole numbers an answer can be, where one that was skipped is drawn evenly. */
function valuesOf(question) {
  if (question.asks === "number") return 2n * BigInt(question.randomizers[0].size) * PARTS + 1n;
  if (question.asks === "ordered") return BigInt(question.last) - BigInt(question.first) + 1n;
  if (question.asks === "month") return monthOf(question.last) - monthOf(question.first) + 1n;
  return BigInt(question.alphabet.length + 1) ** BigInt(question.length);
}

/** The whole number of an answer, or an error that says what to do; null if it was skipped and will be drawn. */
export function codeOf(question, answer) {
  if (answer === "" && question.skip !== undefined) {
    return question.asks === "choice" ? BigInt(question.labels.indexOf(question.skip)) : null;
  }
  const refuse = () => { throw new Error(`Your answer to “${question.text}” is outside of what is asked.`); };
  switch (question.asks) {
    case "choice": {
      const place = question.labels.indexOf(answer);
      return place < 0 ? refuse() : BigInt(place);
    }
    case "several": {
      const plain = text => text.replace(/^ +| +$/g, ""), parts = plain(answer) ? answer.split(";") : [];
      const chosen = parts.map(part => question.labels.indexOf(plain(part)));
      if (chosen.includes(-1) || new Set(chosen).size < chosen.length || chosen.length > Number(question.most)) refuse();
      return chosen.reduce((code, place) => code | (1n << BigInt(place)), 0n);
    }
    case "month": {
      const month = monthOf(answer), [first, last] = [question.first, question.last].map(monthOf);
      return month === null || month < first || month > last ? refuse() : month - first;
    }
    case "ordered": {
      if (!/^-?[0-9]{1,9}$/.test(answer)) refuse();
      const code = BigInt(answer) - BigInt(question.first);
      return code < 0n || BigInt(answer) > BigInt(question.last) ? refuse() : code;
    }
    case "number": {
      if (!/^-?[0-9]{1,15}(\.[0-9]{1,15})?$/.test(answer)) refuse();
      const places = BigInt((answer.split(".")[1] ?? "").length), ten = 10n ** places;
      const number = BigInt(answer.replace(".", "")), [low, of] = fraction(question.low);
      const [high, by] = fraction(question.high), cells = 2n * BigInt(question.randomizers[0].size) * PARTS;
      // (number / ten - low / of) * cells / (high / by - low / of) + 1/2, rounded down
      const top = (number * of - low * ten) * cells * by, bottom = ten * (high * of - low * by);
      if (number * of < low * ten || number * by > high * ten) refuse();
      return floor(2n * top + bottom, 2n * bottom);
    }
    default: {
      const base = BigInt(question.alphabet.length + 1), length = Number(question.length);
      if (answer.length > length || [...answer].some(letter => !question.alphabet.includes(letter))) refuse();
      let code = 0n;
      for (let place = 0; place < length; place++) {
        code = code * base + (place < answer.length ? BigInt(question.alphabet.indexOf(answer[place]) + 1) : 0n);
      }
      return code;
    }
  }
}

/** The randomized answer to one question; a code that was skipped is drawn evenly. */
function randomized(question, known, coins) {
  const levels = question.randomizers.map(weights), code = known ?? coins.below(valuesOf(question));
  const draw = (level, value) => FAMILIES[level.family](level, value, coins);
  if (question.asks === "number") return draw(levels[0], (code + coins.below(PARTS)) / PARTS - levels[0].size);
  if (!question.steps) return draw(levels[0], code);
  const level = Number(coins.below(BigInt(levels.length)));
  return [level, draw(levels[level], code / BigInt(question.steps[level]))];
}

/** The permanent answers of a person to every value of every question, whatever the answers will be. */
export function memosOf(survey, words) {
  const coins = coinsOf(words);
  return Object.fromEntries(survey.questions.map(question => {
    const permanent = weights(question.randomizers[0]);
    return [question.name, question.labels.map((_, at) => FAMILIES[permanent.family](permanent, BigInt(at), coins))];
  }));
}

const bitsOf = (text, size) => Array.from({ length: size }, (_, at) =>
  ((parseInt(text.slice(2 * (at >> 3), 2 * (at >> 3) + 2), 16) >> (at & 7)) & 1) === 1);

/** A permanent answer, randomized again. */
function again(told, memo, coins) {
  if (told.family === "response") return Number(answered(told, told.size, BigInt(memo), coins));
  const size = Number(told.size), flipped = coins.flips(told.other, told.own + told.other, size);
  return hexadecimal(bitsOf(memo, size).map((bit, at) => bit !== flipped[at]));
}

/** The report of one round of a memoized survey, made from permanent answers to these values. */
export function randomizeRound(survey, id, memos, values, round, words) {
  const coins = coinsOf(words);
  const parts = survey.questions.map(({ name, randomizers }) =>
    [name, again(weights(randomizers[1]), memos[name][values[name]], coins)]);
  const [[question, report]] = parts;
  const sent = survey.answers === "all" ? { reports: Object.fromEntries(parts) } : { question, report };
  return { report: { ...sent, survey: id, round }, coins: coins.noted };
}

/** Which values of a question were used, the newest last, and which permanent answer is reported. */
export function nextValue(survey, used, code) {
  const value = used.includes(code) || used.length < Number(survey.rounds.distinct) ? code : used.at(-1);
  return { value, used: [...used.filter(other => other !== value), value] };
}

/** Whether permanent answers, as a person kept them, are those of a survey. */
export function areMemos(survey, kept) {
  const fits = ({ randomizers: [{ family }], labels }, memo) => (family === "response"
    ? Number.isInteger(memo) && memo >= 0 && memo < labels.length
    : typeof memo === "string" && new RegExp(`^[0-9a-f]{${2 * Math.ceil(labels.length / 8)}}$`).test(memo));
  return survey.questions.every(question => {
    const memos = kept?.memos?.[question.name], used = kept?.used?.[question.name] ?? [], size = question.labels.length;
    return Array.isArray(memos) && memos.length === size && memos.every(memo => fits(question, memo))
      && Array.isArray(used) && used.length <= Number(survey.rounds.distinct) && new Set(used).size === used.length
      && used.every(code => Number.isInteger(code) && code >= 0 && code < size);
  });
}

/** One report about all answers, by name: every answer is randomized, or one of a question that is drawn. */
export function randomize(survey, id, answers, words, round) {
  const turn = survey.rounds === undefined ? {} : { round };
  const codes = survey.questions.map(question => codeOf(question, answers[question.name])), coins = coinsOf(words);
  if (survey.answers === "all") {
    const parts = survey.questions.map((question, at) => [question.name, randomized(question, codes[at], coins)]);
    return { report: { reports: Object.fromEntries(parts), survey: id, ...turn }, coins: coins.noted };
  }
  const place = Number(coins.below(BigInt(survey.questions.length))), question = survey.questions[place];
  const report = randomized(question, codes[place], coins);
  return { report: { question: question.name, report, survey: id, ...turn }, coins: coins.noted };
}

/** Words that texts for people must not contain, each with its replacement: the standard terms. The check covers the
 *  pages of the repository, the sentences of the product (texts with a space in them), comments and titles of tests. */
import { parseSync } from 'oxc-parser'
import { isNode, nodesOf } from './syntax.ts'

/** The word as it occurs in the text, and its replacement. */
const WORDS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bdoors?\b/gi, 'an interface, a listener, an entrance'],
  [/\b(?:is|are|was|were|be|been|not) told\b/gi, 'is configured with, is reported to, receives'],
  [/\blets? in\b/gi, 'admits; credentials'],
  [/\bshall\b/gi, 'must, is to'],
  [/\bany more\b/gi, 'no longer'],
  [/\bleads? to\b/gi, 'points to, is assigned to, reaches'],
  [/\blies (?:in|on)\b/gi, 'is in, is on'],
  [/\b(?:go|goes|come|comes) by\b/gi, 'uses, through'],
  // Not where a noun follows: servers "of their own zone".
  [
    /\bof (?:its|their|his|your) own(?=\s*$|[^\w\s]|\s+(?:in|on|for|with|and|or|that|which|instead|by|from|is)\b)/gi,
    'its own, a separate',
  ],
  [/\b(?:go|goes|gone) away\b/gi, 'is deleted, is removed, stops'],
  [/\b(?:is|are) gone\b/gi, 'is deleted, is lost, does not exist'],
  [/\blets? (?:it |them )?go\b/gi, 'releases'],
  [/\bto let go\b/gi, 'to release'],
  [/\btakes? of\b/gi, 'counts against'],
]

/** A word of the list in a text: its position, and its replacement. */
export interface Found {
  readonly index: number
  readonly word: string
  readonly instead: string
}

/** The same, where a line may end between two words. */
const PATTERNS = WORDS.map(([pattern, instead]) => ({
  pattern: new RegExp(pattern.source.replaceAll(' ', String.raw`\s+`), pattern.flags),
  instead,
}))

/** Words of the list in a page or a sentence. */
export const wordsIn = (text: string): readonly Found[] =>
  PATTERNS.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ index, 0: word }) => ({
      index,
      word: word.toLowerCase().replace(/\s+/g, ' '),
      instead,
    })),
  )

const SENTENCE_WORDS_MAXIMUM = 25
/** The end of a sentence, or of its first part before a colon, where another one begins. */
const SENTENCE_END = /(?<=[.!?:])\s+(?=[A-Z`([])/

/** Sentences of a changelog that are too long: the line where their entry starts, and their number of words. */
export const longSentences = (page: string): readonly { readonly line: number; readonly words: number }[] =>
  [...page.matchAll(/^- .*(?:\n {2}.*)*/gm)].flatMap(({ index, 0: entry }) =>
    entry
      .split(SENTENCE_END)
      .map((sentence) => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length)
      .filter((words) => words > SENTENCE_WORDS_MAXIMUM)
      .map((words) => ({ line: page.slice(0, index).split('\n').length, words })),
  )

/** Words of the list in the sentences of a source file: in texts with a space, never in names and paths. */
export function wordsOfSource(file: string, source: string): readonly Found[] {
  const found: Found[] = []
  for (const node of nodesOf(parseSync(file, source).program)) {
    const { type, start } = node
    const text =
      type === 'Literal'
        ? node['value']
        : type === 'TemplateElement' && isNode(node)
          ? cooked(node['value'])
          : undefined
    if (typeof text !== 'string' || !text.includes(' ')) continue
    for (const one of wordsIn(text)) found.push({ ...one, index: Number(start) + one.index })
  }
  return found
}

/** Words of the list in the comments of a source file, apart from what they quote with backticks. */
export const wordsOfComments = (file: string, source: string): readonly Found[] =>
  parseSync(file, source).comments.flatMap(({ value, start }) => {
    const text = value.replace(/\n\s*\*|`[^`]*`/g, (mark) => ' '.repeat(mark.length))
    return wordsIn(text).map((one) => ({ ...one, index: start + '//'.length + one.index }))
  })

const TITLED = new Set(['describe', 'it', 'test'])

/** The function that is called in `test(…)`, `test.each(…)(…)` and the like. */
function calledFunction(callee: unknown): unknown {
  if (!isNode(callee)) return undefined
  if ('callee' in callee) return calledFunction(callee.callee)
  if ('object' in callee) return calledFunction(callee.object)
  return 'name' in callee ? callee.name : undefined
}

/** Words of the list in the titles of tests and of their groups. */
export function wordsOfTitles(file: string, source: string): readonly Found[] {
  const found: Found[] = []
  for (const node of nodesOf(parseSync(file, source).program)) {
    if (node.type !== 'CallExpression' || !TITLED.has(String(calledFunction(node['callee'])))) continue
    const [title] = Array.isArray(node['arguments']) ? node['arguments'] : []
    if (!isNode(title) || !('value' in title) || typeof title.value !== 'string') continue
    for (const one of wordsIn(title.value)) found.push({ ...one, index: title.start + 1 + one.index })
  }
  return found
}

const cooked = (value: unknown): unknown => (value as { readonly cooked?: unknown }).cooked // of the parser's AST

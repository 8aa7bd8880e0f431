/** The rule of transactions: inside of one, only the database is waited for. A transaction holds a connection and the
 *  rows that it has locked; whoever waits for a store, a host or a mail server with it makes everybody else wait. What
 *  must be alone while it speaks to one of them takes a turn (`db/turn/index.ts`). */
import { parseSync } from 'oxc-parser'

interface Node {
  readonly type: string
  readonly start: number
  readonly [field: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
const childrenOf = (node: Node): readonly Node[] => Object.values(node).flat().filter(isNode)

function* nodesOf(node: Node): Generator<Node> {
  yield node
  for (const child of childrenOf(node)) yield* nodesOf(child)
}

const FUNCTIONS = ['ArrowFunctionExpression', 'FunctionExpression', 'FunctionDeclaration']
const nameOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === 'Identifier' && typeof node['name'] === 'string' ? node['name'] : undefined

/** What a transaction is called, everywhere. */
const TRANSACTION = 'tx'
/** Waited for, and over at once: nothing outside of the process is asked. */
const IMMEDIATE = ['stepOf']

const parametersOf = (node: Node): readonly Node[] =>
  FUNCTIONS.includes(node.type) && Array.isArray(node['params']) ? node['params'].filter(isNode) : []
/** Whether the function works in a transaction: it gets one. */
const getsTransaction = (node: Node): boolean => parametersOf(node).some((param) => nameOf(param) === TRANSACTION)
const mentionsTransaction = (node: Node): boolean => [...nodesOf(node)].some((inner) => nameOf(inner) === TRANSACTION)

/** A call, of those that a value is made by, that has nothing to do with the transaction. */
function foreignCalls(node: Node): readonly Node[] {
  const inner = ['expression', 'consequent', 'alternate', 'left', 'right'].map((name) => node[name]).filter(isNode)
  if (node.type !== 'CallExpression') return inner.flatMap(foreignCalls)
  return mentionsTransaction(node) || IMMEDIATE.includes(nameOf(node['callee']) ?? '') ? [] : [node]
}

/** What the function waits for, and functions in it, which run in the transaction too. */
function foreignIn(body: Node): readonly Node[] {
  const found: Node[] = []
  const visit = (node: Node): void => {
    if (node !== body && getsTransaction(node)) return // judged by itself
    if (node.type === 'AwaitExpression' && isNode(node['argument'])) found.push(...foreignCalls(node['argument']))
    if (node.type === 'ForOfStatement' && node['await'] === true) found.push(node)
    for (const child of childrenOf(node)) visit(child)
  }
  visit(body)
  const answer = body['body']
  // `(tx) => call()` answers what it does not wait for itself.
  if (isNode(answer) && answer.type !== 'BlockStatement' && body['async'] !== true) found.push(...foreignCalls(answer))
  return found
}

const isTyped = ({ typeAnnotation }: Node): boolean =>
  isNode(typeAnnotation) &&
  isNode(typeAnnotation['typeAnnotation']) &&
  nameOf(typeAnnotation['typeAnnotation']['typeName']) === 'Transaction'

const propertyOf = (call: unknown): string | undefined =>
  isNode(call) && isNode(call['callee']) ? nameOf(call['callee']['property']) : undefined

/** What is done in `db.transaction().execute(work)`. */
const workOf = (node: Node): Node | undefined => {
  const { callee, arguments: given } = node
  const isTransaction =
    propertyOf(node) === 'execute' && isNode(callee) && propertyOf(callee['object']) === 'transaction'
  return isTransaction && Array.isArray(given) && isNode(given[0]) ? given[0] : undefined
}

/** Functions that get a transaction under another name, where nobody would find it. */
const renamedIn = (program: Node): readonly Node[] => {
  const nodes = [...nodesOf(program)]
  const typed = nodes.flatMap(parametersOf).filter((param) => isTyped(param) && nameOf(param) !== TRANSACTION)
  const works = nodes.flatMap((node) => workOf(node) ?? [])
  return [...typed, ...works.filter((work) => FUNCTIONS.includes(work.type) && !getsTransaction(work))]
}

/** Where a file breaks the rule: offsets in its source. */
export function foreignWaits(file: string, source: string): readonly number[] {
  if (!/\btx\b|transaction/i.test(source)) return []
  const program: unknown = parseSync(file, source).program
  if (!isNode(program)) return []
  const waits = [...nodesOf(program)].filter(getsTransaction).flatMap(foreignIn)
  return [...waits, ...renamedIn(program)].map(({ start }) => start)
}

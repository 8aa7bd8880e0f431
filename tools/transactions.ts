/** The rule of transactions: code inside of one waits only for the database. A transaction holds a connection and its
 *  locked rows; if it waits for a store, a host or a mail server, everybody else waits too. Work that needs exclusive
 *  access to one of them takes a turn (`db/turn/index.ts`). */
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

/** The name of a transaction, everywhere. */
const TRANSACTION = 'tx'
/** Awaited, but finished immediately: nothing outside of the process is called. */
const IMMEDIATE = ['stepOf']
/** Methods of arrays, maps and sets, and of the keys of this process: they return no promise, even if other functions
 *  have the same name. */
const SYNCHRONOUS = ['find', 'has', 'sealing.open']

const parametersOf = (node: Node): readonly Node[] =>
  FUNCTIONS.includes(node.type) && Array.isArray(node['params']) ? node['params'].filter(isNode) : []
/** Whether the function works in a transaction: it has one as a parameter. */
const getsTransaction = (node: Node): boolean => parametersOf(node).some((param) => nameOf(param) === TRANSACTION)
const mentionsTransaction = (node: Node): boolean => [...nodesOf(node)].some((inner) => nameOf(inner) === TRANSACTION)

/** A call in the expression that does not involve the transaction. */
function foreignCalls(node: Node): readonly Node[] {
  const inner = ['expression', 'consequent', 'alternate', 'left', 'right'].map((name) => node[name]).filter(isNode)
  if (node.type !== 'CallExpression') return inner.flatMap(foreignCalls)
  return mentionsTransaction(node) || IMMEDIATE.includes(nameOf(node['callee']) ?? '') ? [] : [node]
}

/** Whether the annotation names this type. */
const isReference = (annotation: unknown, name: string): boolean => {
  const type = isNode(annotation) ? annotation['typeAnnotation'] : undefined
  return isNode(type) && nameOf(type['typeName']) === name
}

const SIGNATURES = [...FUNCTIONS, 'TSFunctionType', 'TSMethodSignature', 'TSDeclareFunction']
const typeOf = (node: unknown): unknown =>
  isNode(node) && isNode(node['typeAnnotation']) ? node['typeAnnotation']['typeAnnotation'] : undefined
const answersPromise = (node: unknown): boolean =>
  isNode(node) && (node['async'] === true || isReference(node['returnType'], 'Promise'))

/** The declaration of a function or of its type: its name, and whether it returns a promise. */
function declarationOf(node: Node): { readonly name: string; readonly isPromise: boolean } | undefined {
  const named = (name: unknown, signature: unknown) => {
    const known = nameOf(name)
    const isSignature = isNode(signature) && SIGNATURES.includes(signature.type)
    return known !== undefined && isSignature ? { name: known, isPromise: answersPromise(signature) } : undefined
  }
  if (node.type === 'VariableDeclarator')
    return named(node['id'], node['init']) ?? named(node['id'], typeOf(node['id']))
  if (['Property', 'MethodDefinition', 'PropertyDefinition'].includes(node.type))
    return named(node['key'], node['value'])
  if (node.type === 'TSPropertySignature') return named(node['key'], typeOf(node))
  if (node.type === 'TSMethodSignature') return named(node['key'], node)
  if (node.type === 'Identifier') return named(node, typeOf(node))
  return FUNCTIONS.includes(node.type) ? named(node['id'], node) : undefined
}

/** Names of the functions of a file that return a promise, according to their declarations. */
export function promisesOf(file: string, source: string): readonly string[] {
  const program: unknown = parseSync(file, source).program
  if (!isNode(program)) return []
  const declared = declaredIn([...nodesOf(program)])
  return [...declared].flatMap(([name, isPromise]) => (isPromise ? [name] : []))
}

/** The declarations of the nodes, by name; a name of several returns a promise when one of them does. */
const declaredIn = (nodes: readonly Node[]): ReadonlyMap<string, boolean> => {
  const declared = nodes.flatMap((node) => declarationOf(node) ?? [])
  const promises = new Set(declared.flatMap(({ name, isPromise }) => (isPromise ? [name] : [])))
  return new Map(declared.map(({ name }) => [name, promises.has(name)]))
}

/** Names that return a promise. */
interface Names {
  /** In any file. */
  readonly everywhere: ReadonlySet<string>
  /** According to the declarations of this file, which are more exact. */
  readonly here: ReadonlyMap<string, boolean>
}

const isPromise = (call: Node, { everywhere, here }: Names): boolean => {
  const { callee } = call
  const plain = nameOf(callee)
  if (plain !== undefined) return here.get(plain) ?? everywhere.has(plain)
  const method = propertyOf(call)
  if (method === undefined || !isNode(callee)) return false
  const owner = propertyOf({ type: '', start: 0, callee: callee['object'] }) ?? nameOf(callee['object']) ?? ''
  return everywhere.has(method) && !SYNCHRONOUS.includes(method) && !SYNCHRONOUS.includes(`${owner}.${method}`)
}

/** Whether the value is used immediately, so that it is no promise: by accessing a member, or in a comparison. */
const isUsedBy = (parent: Node, node: Node): boolean =>
  (parent.type === 'MemberExpression' &&
    parent['object'] === node &&
    !['then', 'catch', 'finally'].includes(nameOf(parent['property']) ?? '')) ||
  ['BinaryExpression', 'UnaryExpression', 'IfStatement', 'SpreadElement'].includes(parent.type)

/** What the function waits for, including functions in it, which run in the transaction too; also promises that it
 *  returns without waiting, because the caller waits for them in the transaction. */
function foreignIn(body: Node, names: Names): readonly Node[] {
  const found: Node[] = []
  const visit = (node: Node, parent: Node): void => {
    if (node !== body && getsTransaction(node)) return // judged by itself
    if (node.type === 'AwaitExpression' && isNode(node['argument'])) found.push(...foreignCalls(node['argument']))
    if (node.type === 'ForOfStatement' && node['await'] === true) found.push(node)
    if (node.type === 'CallExpression' && isPromise(node, names) && !isUsedBy(parent, node))
      found.push(...foreignCalls(node))
    for (const child of childrenOf(node)) visit(child, node)
  }
  visit(body, body)
  const answer = body['body']
  // `(tx) => call()` returns a promise that it does not await itself.
  if (isNode(answer) && answer.type !== 'BlockStatement' && body['async'] !== true) found.push(...foreignCalls(answer))
  return found
}

const propertyOf = (call: unknown): string | undefined =>
  isNode(call) && isNode(call['callee']) ? nameOf(call['callee']['property']) : undefined

/** The work in `db.transaction().execute(work)`. */
const workOf = (node: Node): Node | undefined => {
  const { callee, arguments: given } = node
  const isTransaction =
    propertyOf(node) === 'execute' && isNode(callee) && propertyOf(callee['object']) === 'transaction'
  return isTransaction && Array.isArray(given) && isNode(given[0]) ? given[0] : undefined
}

/** Functions that get a transaction under another name, which this check would miss. */
const renamedIn = (program: Node): readonly Node[] => {
  const nodes = [...nodesOf(program)]
  const typed = nodes
    .flatMap(parametersOf)
    .filter((param) => isReference(param['typeAnnotation'], 'Transaction') && nameOf(param) !== TRANSACTION)
  const works = nodes.flatMap((node) => workOf(node) ?? [])
  return [...typed, ...works.filter((work) => FUNCTIONS.includes(work.type) && !getsTransaction(work))]
}

/** Where a file breaks the rule: offsets in its source. `promises` are the names that return one in other files. */
export function foreignWaits(
  file: string,
  source: string,
  promises: ReadonlySet<string> = new Set(),
): readonly number[] {
  if (!/\btx\b|transaction/i.test(source)) return []
  const program: unknown = parseSync(file, source).program
  if (!isNode(program)) return []
  const nodes = [...nodesOf(program)]
  const names = { everywhere: promises, here: declaredIn(nodes) }
  const waits = nodes.filter(getsTransaction).flatMap((node) => foreignIn(node, names))
  return [...new Set([...waits, ...renamedIn(program)].map(({ start }) => start))]
}

/** The mutants of a source file: small changes of its syntax tree that a good test detects. Types, imports, log lines
 *  and sentences for people are left alone. */
import { parseSync } from 'oxc-parser'

export interface Mutant {
  readonly file: string
  /** What kind of change it is. */
  readonly operator: string
  /** Offsets in the source of the replaced text. */
  readonly start: number
  readonly end: number
  readonly replacement: string
  readonly line: number
}

/** A node of the syntax tree. */
interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

/** The parent of a node. */
interface Place {
  readonly parent: Node | undefined
  /** The member of the parent that contains the node. */
  readonly member: string
}

type Change = Pick<Mutant, 'operator' | 'start' | 'end' | 'replacement'>

/** Every mutant of the file, in the order of the source. Throws for source that cannot be parsed. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source)
  const [error] = errors
  if (error !== undefined) throw new SyntaxError(`${file}: ${error.message}`)
  const changes: Change[] = []
  const visit = (node: Node, place: Place): void => {
    if (isLeftAlone(node)) return
    changes.push(...changesOf(node, place, source))
    for (const [member, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (isNode(child) && !isType(child)) visit(child, { parent: node, member })
      }
    }
  }
  if (isNode(program)) visit(program, { parent: undefined, member: '' })
  const unique = new Map(changes.map((change) => [`${change.start} ${change.end} ${change.replacement}`, change]))
  return [...unique.values()]
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map((change) => ({ file, ...change, line: source.slice(0, change.start).split('\n').length }))
}

/** The source with the mutant applied. */
export const mutated = (source: string, { start, end, replacement }: Mutant): string =>
  source.slice(0, start) + replacement + source.slice(end)

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
const nodeIn = (node: Node, member: string): Node | undefined => {
  const value = node[member]
  return isNode(value) ? value : undefined
}

/** Expressions with TypeScript syntax around them. */
const EXPRESSIONS = ['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']
const isType = ({ type }: Node): boolean => type.startsWith('TS') && !EXPRESSIONS.includes(type)

const isLeftAlone = (node: Node): boolean =>
  node.type === 'ImportDeclaration' || node.type.startsWith('Export')
    ? nodeIn(node, 'declaration') === undefined
    : isLog(node)

/** A call of a method of `log`. */
function isLog(node: Node): boolean {
  const call = node.type === 'ExpressionStatement' ? nodeIn(node, 'expression') : undefined
  const object = call && nodeIn(call, 'callee') && nodeIn(nodeIn(call, 'callee') ?? node, 'object')
  return object?.['name'] === 'log'
}

const COMPARISONS: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
}
const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '**': '*' }
const LOGIC: Readonly<Record<string, string>> = { '&&': '||', '||': '&&' }
const METHODS = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
])

function changesOf(node: Node, place: Place, source: string): Change[] {
  switch (node.type) {
    case 'BinaryExpression':
      return binaryChanges(node, source)
    case 'LogicalExpression':
      return logicalChanges(node, source)
    case 'UnaryExpression':
      return node['operator'] === '!' ? [replace('negation', node, textOf(node, 'argument', source))] : []
    case 'IfStatement':
    case 'ConditionalExpression':
      return conditionChanges(node)
    case 'Literal':
      return literalChanges(node, place)
    case 'MemberExpression':
      return methodChanges(node, place)
    case 'ExpressionStatement':
      return typeof node['directive'] === 'string' ? [] : [replace('statement', node, ';')]
    case 'ThrowStatement':
    case 'ContinueStatement':
    case 'BreakStatement':
      return [replace('statement', node, ';')]
    case 'ReturnStatement':
      return isEarly(place) ? [replace('early return', node, ';')] : []
    default:
      return []
  }
}

const replace = (operator: string, { start, end }: Node, replacement: string): Change => ({
  operator,
  start,
  end,
  replacement,
})
const textOf = (node: Node, member: string, source: string): string => {
  const inner = nodeIn(node, member)
  return inner === undefined ? '' : source.slice(inner.start, inner.end)
}

/** Replaces the operator between the two sides. */
function betweenSides(operator: string, node: Node, source: string, symbols: readonly string[]): Change[] {
  const [left, right] = [nodeIn(node, 'left'), nodeIn(node, 'right')]
  if (left === undefined || right === undefined) return []
  const symbol = String(node['operator'])
  const start = left.end + source.slice(left.end, right.start).indexOf(symbol)
  return symbols.map((replacement) => ({ operator, start, end: start + symbol.length, replacement }))
}

function binaryChanges(node: Node, source: string): Change[] {
  const symbol = String(node['operator'])
  const sum = ARITHMETIC[symbol]
  if (sum !== undefined) return isText(node) ? [] : betweenSides('arithmetic', node, source, [sum])
  return betweenSides('comparison', node, source, COMPARISONS[symbol] ?? [])
}

/** A sum in which one part is a text: texts cannot be subtracted. */
function isText(node: Node | undefined): boolean {
  if (node?.type === 'TemplateLiteral' || typeof node?.['value'] === 'string') return true
  return node?.type === 'BinaryExpression' && (isText(nodeIn(node, 'left')) || isText(nodeIn(node, 'right')))
}

function logicalChanges(node: Node, source: string): Change[] {
  const symbol = String(node['operator'])
  const other = LOGIC[symbol]
  if (other !== undefined) return betweenSides('logic', node, source, [other])
  return [replace('default', node, `(${textOf(node, 'right', source)})`)]
}

function conditionChanges(node: Node): Change[] {
  const test = nodeIn(node, 'test')
  return test === undefined ? [] : ['true', 'false'].map((value) => replace('condition', test, value))
}

function literalChanges(node: Node, { parent, member }: Place): Change[] {
  const { value } = node
  if (member === 'key' || member === 'source') return []
  if (typeof value === 'boolean') return [replace('boolean', node, String(!value))]
  if (typeof value === 'number') return [replace('number', node, String(value + 1))]
  const isCompared =
    parent?.type === 'SwitchCase' || (parent?.type === 'BinaryExpression' && parent['operator'] !== '+')
  return typeof value === 'string' && isCompared ? [replace('text', node, "'mutated'")] : []
}

function methodChanges(node: Node, { member }: Place): Change[] {
  const property = nodeIn(node, 'property')
  const other = METHODS.get(String(property?.['name']))
  const isCall = member === 'callee' && node['computed'] === false
  return property === undefined || other === undefined || !isCall ? [] : [replace('method', property, other)]
}

/** A return that is not the last statement of its function. */
const isEarly = ({ parent, member }: Place): boolean =>
  member === 'consequent' || member === 'alternate' || (parent?.type === 'BlockStatement' && isEarlyBlock(parent))
const isEarlyBlock = (block: Node): boolean => {
  const { body } = block
  return Array.isArray(body) && isNode(body.at(-1)) && body.at(-1).type !== 'ReturnStatement'
}

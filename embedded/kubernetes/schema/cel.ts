/** CEL expressions as in Kubernetes: values by their schema, and the supported part of the Kubernetes library.
 *  Everything else is an error when a definition is written, not when it is used. */
import { Environment, type ParseResult, type TypeCheckResult } from '@marcbachmann/cel-js'
import { isIP } from 'node:net'
import { isList, isObject, type Json } from '../core/json.ts'
import { isCidr, isUri } from './formats.ts'
import { memberSchema, type Schema } from './schema.ts'
import { compilePattern } from './validate.ts'

const EXPRESSION_MOST_LETTERS = 4_096
const LIMITS = { maxAstNodes: 2_000, maxDepth: 64, maxListElements: 256, maxMapEntries: 256, maxCallArguments: 16 }

/** The expression is valid, but its result has the wrong type. */
export class WrongResult extends Error {}

/** A value in an expression. */
export type CelValue = unknown

/** Integers become bigints, times become dates; the schema decides the type of everything. */
export function celValue(value: Json, schema: Schema | undefined): CelValue {
  if (typeof value === 'number')
    return schema?.type === 'number' || !Number.isSafeInteger(value) ? value : BigInt(value)
  if (typeof value === 'string')
    return schema?.format === 'date-time' || schema?.format === 'date' ? new Date(value) : value
  if (isList(value)) return value.map((item) => celValue(item, schema?.items))
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    members.map(([key, member]) => [
      schema?.properties && Object.hasOwn(schema.properties, key) ? escaped(key) : key,
      celValue(member ?? null, memberSchema(schema, key)),
    ]),
  )
}

const RESERVED = new Set([
  'true',
  'false',
  'null',
  'in',
  'as',
  'break',
  'const',
  'continue',
  'else',
  'for',
  'function',
  'if',
  'import',
  'let',
  'loop',
  'package',
  'namespace',
  'return',
  'var',
  'void',
  'while',
])

/** Most names need no escaping. */
const PLAIN = /^[a-zA-Z0-9]*$/
/** Names of members that are not identifiers, as Kubernetes escapes them in expressions. */
const escaped = (name: string): string =>
  RESERVED.has(name)
    ? `__${name}__`
    : PLAIN.test(name)
      ? name
      : name
          .replaceAll('__', '__underscores__')
          .replaceAll('.', '__dot__')
          .replaceAll('-', '__dash__')
          .replaceAll('/', '__slash__')
const unescaped = (name: string): string =>
  name
    .replace(/^__([a-z]+)__$/, (whole, word: string) => (RESERVED.has(word) ? word : whole))
    .replaceAll('__dot__', '.')
    .replaceAll('__dash__', '-')
    .replaceAll('__slash__', '/')
    .replaceAll('__underscores__', '__')

const typeOf = (schema: Schema): string => {
  if (schema['x-kubernetes-int-or-string'] || schema.nullable) return 'dyn'
  if (schema.type === 'string')
    return schema.format === 'date-time' || schema.format === 'date' ? 'google.protobuf.Timestamp' : 'string'
  return { integer: 'int', number: 'double', boolean: 'bool', array: 'list<dyn>' }[schema.type ?? ''] ?? 'dyn'
}

const compiled = new Map<string, ParseResult>()
const COMPILED_MOST = 10_000

/** A function from the variables to the value. Throws an Error with the reason when the expression is not accepted. */
export function compileCel(
  expression: string,
  schema: Schema,
  isOldOptional: boolean,
  result: 'bool' | 'string',
): (variables: { readonly self: CelValue; readonly oldSelf?: CelValue }) => unknown {
  const type = typeOf(schema)
  const name = JSON.stringify([expression, type, isOldOptional])
  const known = compiled.get(name)
  if (known) return known
  const { parsed, checked } = compile(environmentOf(type, isOldOptional), expression)
  // cel-js types both loosely: the type of a message has a name, and the tree consists of its nodes
  const found = String((checked.type as { readonly name?: string } | undefined)?.name ?? checked.type)
  if (found !== result && found !== 'dyn') throw new WrongResult(`cel expression must evaluate to a ${result}`)
  checkNode(parsed.ast as Node, schema) // as above
  if (compiled.size < COMPILED_MOST) compiled.set(name, parsed)
  return parsed
}

function compile(
  environment: Environment,
  expression: string,
): { readonly parsed: ParseResult; readonly checked: TypeCheckResult } {
  if (expression.length > EXPRESSION_MOST_LETTERS)
    throw new Error(`an expression may have at most ${EXPRESSION_MOST_LETTERS} letters`)
  const parsed = environment.parse(expression)
  const checked = parsed.check()
  if (!checked.valid) throw checked.error ?? new Error('the expression is not valid')
  return { parsed, checked }
}

interface Node {
  readonly op: string
  readonly args: unknown
}
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'op' in value && 'args' in value

/** Follows `self.a.b` through the schema; undeclared members are errors. Returns the schema of the node. */
function checkNode(node: Node, self: Schema): Schema | undefined {
  const args = Array.isArray(node.args) ? node.args : [node.args]
  if (node.op === 'id') return args[0] === 'self' || args[0] === 'oldSelf' ? self : undefined
  if ((node.op === '.' || node.op === '.?') && isNode(args[0])) {
    const parent = checkNode(args[0], self)
    const name = String(args[1])
    if (!parent?.properties || parent['x-kubernetes-preserve-unknown-fields'] || parent.nullable) return undefined
    const isRootMember = parent === self && ['apiVersion', 'kind', 'metadata'].includes(name)
    const member = memberSchema(parent, unescaped(name))
    if (!member && !isRootMember) throw new Error(`undefined field '${name}'`)
    return isRootMember ? undefined : member
  }
  for (const arg of args.flat(3)) if (isNode(arg)) checkNode(arg, self)
  return undefined
}

const environments = new Map<string, Environment>()

function environmentOf(type: string, isOldOptional: boolean): Environment {
  const name = `${type} ${isOldOptional}`
  let environment = environments.get(name)
  if (!environment) {
    environment = library
      .clone()
      .registerVariable('self', type)
      .registerVariable('oldSelf', isOldOptional ? 'optional<dyn>' : type)
    environments.set(name, environment)
  }
  return environment
}

/** Compares values that CEL can order. */
const order = (a: unknown, b: unknown): number =>
  // bigint, number, string and Date compare in the same way
  (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0

const pick = (list: readonly unknown[], isBetter: (one: unknown, best: unknown) => boolean): unknown => {
  if (list.length === 0) throw new Error('no elements')
  return list.reduce((best, one) => (isBetter(one, best) ? one : best))
}
const sameValue = (a: unknown, b: unknown): boolean => order(a, b) === 0 && typeof a === typeof b

const library = new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits: LIMITS })
  .registerFunction('list<dyn>.isSorted(): bool', (list: unknown[]) =>
    list.every((item, index) => index === 0 || order(list[index - 1], item) <= 0),
  )
  .registerFunction('list<dyn>.min(): dyn', (list: unknown[]) => pick(list, (one, best) => order(one, best) < 0))
  .registerFunction('list<dyn>.max(): dyn', (list: unknown[]) => pick(list, (one, best) => order(one, best) > 0))
  .registerFunction('list<dyn>.sum(): dyn', (list: (bigint | number)[]) =>
    list.reduce(
      (sum, one) => (typeof sum === 'bigint' && typeof one === 'bigint' ? sum + one : Number(sum) + Number(one)),
      list.every((one) => typeof one === 'bigint') ? 0n : 0,
    ),
  )
  .registerFunction('list<dyn>.indexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findIndex((one) => sameValue(one, item))),
  )
  .registerFunction('list<dyn>.lastIndexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findLastIndex((one) => sameValue(one, item))),
  )
  .registerFunction(
    'string.find(string): string',
    (text: string, pattern: string) => compilePattern(pattern).exec(text)?.[0] ?? '',
  )
  .registerFunction('string.findAll(string): list<string>', (text: string, pattern: string) =>
    [...text.matchAll(new RegExp(compilePattern(pattern).source, 'gu'))].map(([found]) => found),
  )
  .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
    text.replaceAll(from, () => to),
  )
  .registerFunction('string.charAt(int): string', (text: string, index: bigint) => [...text][Number(index)] ?? '')
  .registerFunction('isIP(string): bool', (text: string) => isIP(text) !== 0)
  .registerFunction('isCIDR(string): bool', isCidr)
  .registerFunction('isURL(string): bool', isUri)
  .registerFunction('isQuantity(string): bool', (text: string) => QUANTITY.test(text))

const QUANTITY = /^[+-]?(\d+(\.\d*)?|\.\d+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?\d+))?$/

const conditionEnvironment = library
  .clone()
  .registerVariable('request', 'dyn')
  .registerVariable('object', 'dyn')
  .registerVariable('oldObject', 'dyn')

/** Whether a webhook wants to see a write. Throws an Error with the reason when the expression is not accepted. */
export function compileCondition(
  expression: string,
): (variables: { readonly request: CelValue; readonly object: CelValue; readonly oldObject: CelValue }) => unknown {
  const name = JSON.stringify(['condition', expression])
  const known = compiled.get(name)
  if (known) return known
  const { parsed } = compile(conditionEnvironment, expression)
  if (compiled.size < COMPILED_MOST) compiled.set(name, parsed)
  return parsed
}

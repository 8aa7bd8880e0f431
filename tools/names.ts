/** Names that say what was done to a value and not what it is. The check covers what the product declares: variables,
 *  parameters, functions, types and their fields. Words of the API and of stored objects are in schemas, which are no
 *  declarations. */
import { parseSync } from 'oxc-parser'
import { isNode, nodesOf, type SyntaxNode } from './syntax.ts'

/** Participles for which a noun says more: `result`, `grant`, `orphans`. */
const PARTICIPLES = /^#?(?:asked|brought|given|gone|kept|made|meant|said|seen|taken|told)$/i
/** Types are things: `FoundUse`, not `Found`. */
const TYPE_PARTICIPLES = /^(?:[A-Z][a-z]*[^e]ed|Done|Found|Frozen|Held|Known|Shown|Written)$/
/** Types whose participle is the term for the thing. */
const TERMS = ['Defined', 'Observed', 'Stored']

/** A declared name that is a participle, and its position. */
export interface Participle {
  readonly index: number
  readonly name: string
}

/** The declarations of a file whose whole name is one of these participles. */
export function participlesOf(file: string, source: string): readonly Participle[] {
  const found: Participle[] = []
  for (const node of nodesOf(parseSync(file, source).program))
    for (const { name, start } of declaredBy(node).flatMap(namesIn))
      if (PARTICIPLES.test(name) || (isType(node) && TYPE_PARTICIPLES.test(name) && !TERMS.includes(name)))
        found.push({ index: start, name })
  return found
}

const isType = ({ type }: SyntaxNode): boolean => type === 'TSInterfaceDeclaration' || type === 'TSTypeAliasDeclaration'

type Node = SyntaxNode & Readonly<Record<string, unknown>>

/** The patterns by which a node declares names. */
function declaredBy(node: Node): readonly unknown[] {
  switch (node.type) {
    case 'VariableDeclarator':
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
    case 'ClassDeclaration':
      return [node['id']]
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return [node['id'], node['params']]
    case 'TSPropertySignature':
    case 'TSMethodSignature':
    case 'PropertyDefinition':
    case 'MethodDefinition':
      return [node['key']]
    case 'CatchClause':
      return [node['param']]
    default:
      return []
  }
}

/** The names that a pattern binds, with their positions. */
function namesIn(pattern: unknown): readonly { readonly name: string; readonly start: number }[] {
  if (Array.isArray(pattern)) return pattern.flatMap(namesIn)
  if (!isNode(pattern)) return []
  const node: Node = { ...pattern }
  switch (node.type) {
    case 'Identifier':
    case 'PrivateIdentifier':
      return [{ name: String(node['name']), start: node.start }]
    case 'ObjectPattern':
      return namesIn(node['properties'])
    case 'Property':
      return namesIn(node['value'])
    case 'ArrayPattern':
      return namesIn(node['elements'])
    case 'AssignmentPattern':
      return namesIn(node['left'])
    case 'RestElement':
      return namesIn(node['argument'])
    case 'TSParameterProperty':
      return namesIn(node['parameter'])
    default:
      return []
  }
}

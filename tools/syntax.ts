/** Walks the syntax tree of a file. */

export interface SyntaxNode {
  readonly type: string
  readonly start: number
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value

/** Every node of the tree of a file, parents first. */
export function* nodesOf(value: unknown): Generator<SyntaxNode & Record<string, unknown>> {
  if (Array.isArray(value)) for (const item of value) yield* nodesOf(item)
  else if (isNode(value)) {
    const node = { ...value }
    yield node
    for (const child of Object.values(node)) yield* nodesOf(child)
  }
}

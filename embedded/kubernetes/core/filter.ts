/** Filters the objects of a list, a watch or a collection delete. */
import { compileJsonPath } from './jsonpath.ts'
import { asObject } from './json.ts'
import type { Definition } from './definition.ts'
import type { KubeObject } from './object.ts'
import { parseFieldSelector, parseLabelSelector, type FieldRequirement } from './selector.ts'
import { badRequest } from './status.ts'
import type { Query } from './request.ts'

export interface Filter {
  /** Keys of objects start with this. */
  readonly prefix: string
  /** The only key that can match, if the selector names one object of one namespace. */
  readonly onlyKey: string | undefined
  /** No selector: everything below the prefix matches. */
  readonly isEverything: boolean
  /** Takes the object in the definition's version. */
  readonly matches: (view: KubeObject) => boolean
}

export function filterOf(definition: Definition, namespace: string, name: string, query: Query): Filter {
  const labels = parseLabelSelector(query.get('labelSelector') ?? undefined)
  const fields = [
    ...parseFieldSelector(query.get('fieldSelector') ?? undefined),
    ...(name === '' ? [] : [{ field: 'metadata.name', isNegated: false, value: name }]),
  ]
  const tests = fields.map((requirement) => fieldTest(definition, requirement))
  const named = fields.find(({ field, isNegated }) => field === 'metadata.name' && !isNegated)?.value
  return {
    prefix: namespace === '' ? '' : `${namespace}/`,
    onlyKey:
      named === undefined || (definition.isNamespaced && namespace === '')
        ? undefined
        : namespace === ''
          ? named
          : `${namespace}/${named}`,
    isEverything: labels === undefined && tests.length === 0,
    matches: (view) =>
      (labels === undefined || labels(view.metadata.labels ?? {})) && tests.every((test) => test(view)),
  }
}

function fieldTest(
  definition: Definition,
  { field, isNegated, value }: FieldRequirement,
): (view: KubeObject) => boolean {
  const read = fieldReader(definition, field)
  if (!read) throw badRequest(`field label not supported: ${field}`)
  return (view) => (read(view) === value) !== isNegated
}

function fieldReader(definition: Definition, field: string): ((view: KubeObject) => string) | undefined {
  if (field === 'metadata.name') return (view) => view.metadata.name
  if (field === 'metadata.namespace') return (view) => view.metadata.namespace ?? ''
  const path = definition.selectableFields.find((candidate) => candidate === `.${field}`)
  if (path === undefined) return undefined
  const select = compileJsonPath(path)
  return (view) => {
    const found = select(asObject(view))[0]
    return found === undefined || found === null ? '' : String(found)
  }
}

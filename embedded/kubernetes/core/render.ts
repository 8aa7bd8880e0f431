/** Objects and lists in the representation that the client requested: plain, metadata only, or as a table for people.
 */
import type { Representation } from './accept.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { ageOf } from './age.ts'
import type { Column, Definition } from './definition.ts'
import { groupVersionOf } from './definition.ts'
import { compileJsonPath } from './jsonpath.ts'
import { jsonText, type Json, type JsonObject } from './json.ts'
import type { KubeObject } from './object.ts'
import { itemText } from './view.ts'

export interface ListMetadata {
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export interface Renderer {
  object(view: KubeObject): string
  list(views: readonly KubeObject[], metadata: ListMetadata): string
  /** Renders one event: the first table of a watch contains the columns, the others omit them. */
  event(view: KubeObject): string
}

/** Ages are computed when a row is rendered, because a watch renders rows long after it started. */
export function rendererOf(definition: Definition, as: Representation, includeObject: string, clock: Clock): Renderer {
  if (as.as === 'Table') return tableRenderer(definition, as.version ?? 'v1', includeObject, clock)
  if (as.as === 'PartialObjectMetadata' || as.as === 'PartialObjectMetadataList') {
    const version = as.version ?? 'v1'
    const object = (view: KubeObject) => jsonText(partial(view, version))
    const list = (views: readonly KubeObject[], metadata: ListMetadata) =>
      listText('PartialObjectMetadataList', `meta.k8s.io/${version}`, metadata, views.map(object))
    return { object, list, event: object }
  }
  return {
    object: jsonText,
    list: (views, metadata) =>
      listText(
        definition.listKind,
        groupVersionOf(definition),
        definition.isCustom ? { continue: '', ...metadata } : metadata,
        views.map((view) => itemText(definition, view)),
      ),
    event: jsonText,
  }
}

const listText = (kind: string, apiVersion: string, metadata: ListMetadata, items: readonly string[]): string =>
  `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},` +
  `"metadata":${JSON.stringify(metadata)},"items":[${items.join(',')}]}`

const partial = (view: KubeObject, version: string): JsonObject => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: view.metadata,
})

const NAME_TEXT =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may ' +
  'allow a client to request the generation of an appropriate name automatically. Name is primarily intended for ' +
  'creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/' +
  'concepts/overview/working-with-objects/names#names'
const NAME_COLUMN = { name: 'Name', type: 'string', format: 'name', description: NAME_TEXT, priority: 0 }
const AGE: Column = {
  name: 'Age',
  type: 'date',
  description: 'How long ago the object was created.',
  cell: '.metadata.creationTimestamp',
}

function tableRenderer(definition: Definition, version: string, includeObject: string, clock: Clock): Renderer {
  const columns = columnsOf(definition)
  const definitions = [
    ...(columns.hasName ? [NAME_COLUMN] : []),
    ...columns.columns.map(({ name, type, format, description, priority }) => ({
      name,
      type,
      format: format ?? '',
      description: description ?? '',
      priority: priority ?? 0,
    })),
  ]
  const rowOf = (view: KubeObject): JsonObject => ({
    cells: [
      ...(columns.hasName ? [view.metadata.name] : []),
      ...columns.columns.map((column) => cellOf(column, view, clock.now())),
    ],
    ...(includeObject === 'None' ? {} : { object: includeObject === 'Object' ? view : partial(view, 'v1') }),
  })
  const table = (views: readonly KubeObject[], metadata: ListMetadata, headers: readonly JsonObject[] | null): string =>
    JSON.stringify({
      kind: 'Table',
      apiVersion: `meta.k8s.io/${version}`,
      metadata,
      columnDefinitions: headers,
      rows: views.map(rowOf),
    })
  let isFirst = true
  return {
    object: (view) => table([view], { resourceVersion: view.metadata.resourceVersion }, definitions),
    list: (views, metadata) => table(views, metadata, definitions),
    event(view) {
      const headers = isFirst ? definitions : null
      isFirst = false
      return table([view], { resourceVersion: view.metadata.resourceVersion }, headers)
    },
  }
}

interface TableColumns {
  readonly hasName: boolean
  readonly columns: readonly Column[]
}

const columnsOf = ({ columns, isCustom }: Definition): TableColumns => {
  const own = columns ?? [AGE]
  // Built-in kinds define these columns themselves.
  return { hasName: isCustom || (own[0]?.name !== 'Name' && own[0]?.name !== 'Last Seen'), columns: own }
}

const compiled = new WeakMap<Column, (value: Json) => readonly Json[]>()

function cellOf(column: Column, view: KubeObject, now: Date): Json {
  if (typeof column.cell === 'function') return column.cell(view, now)
  let select = compiled.get(column)
  if (!select) compiled.set(column, (select = compileJsonPath(column.cell)))
  const value = select(view)[0]
  if (value === undefined) return null
  switch (column.type) {
    case 'date':
      return typeof value === 'string' ? ageOf(value, now) : '<unknown>'
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value)
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    default:
      return typeof value === 'number'
        ? value
        : typeof value === 'string' && value !== '' && Number.isFinite(Number(value))
          ? Number(value)
          : null
  }
}

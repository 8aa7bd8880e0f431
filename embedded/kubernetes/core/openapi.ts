/** OpenAPI v3, one document for each group and version. kubectl uses it for `explain`, and to detect that the server
 *  validates. */
import { createHash } from 'node:crypto'
import { groupVersionOf, type Definition } from './definition.ts'
import { json, type Answer, type Engine } from './engine.ts'
import type { Json, JsonObject } from './json.ts'
import type { Request } from './request.ts'
import type { Schema } from '../schema/schema.ts'
import { METADATA_SCHEMA } from './openapi-metadata.ts'

const ROOT = '/openapi/v3'
const documents = new WeakMap<Engine, { readonly epoch: number; readonly byPath: ReadonlyMap<string, Document> }>()

const V2 = '/openapi/v2'
const V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** swagger "2.0", info {title "svccloud", version "1"}, no paths, no definitions: in protobuf of gnostic. */
const V2_EMPTY = '\n\x032.0\x12\r\n\bsvccloud\x12\x011B\0J\0'

/** An empty version 2: kubectl needs it to detect that it should not validate lists of objects. */
function emptyVersion2(request: Request): Answer {
  const isProtobuf = (request.headers.accept ?? '').includes('protobuf')
  return isProtobuf
    ? { status: 200, headers: { 'content-type': V2_PROTOBUF }, body: V2_EMPTY }
    : json(
        200,
        JSON.stringify({ swagger: '2.0', info: { title: 'svccloud', version: '1' }, paths: {}, definitions: {} }),
      )
}

interface Document {
  readonly text: string
  readonly hash: string
}

/** Undefined when the group and version do not exist. */
export function openApi(engine: Engine, request: Request, path: string): Answer | undefined {
  if (path === V2) return emptyVersion2(request)
  const byPath = documentsOf(engine)
  if (path === ROOT) {
    const paths = Object.fromEntries(
      [...byPath].map(([name, { hash }]) => [name, { serverRelativeURL: `${ROOT}/${name}?hash=${hash}` }]),
    )
    return json(200, JSON.stringify({ paths }))
  }
  const document = byPath.get(path.slice(ROOT.length + 1))
  if (!document) return undefined
  const etag = `"${document.hash}"`
  const isHashed = request.path.includes(`hash=${document.hash}`)
  const headers = { etag, vary: 'Accept', 'cache-control': isHashed ? 'public, immutable' : 'no-cache, private' }
  return request.headers['if-none-match'] === etag
    ? { status: 304, headers, body: '' }
    : json(200, document.text, headers)
}

function documentsOf(engine: Engine): ReadonlyMap<string, Document> {
  const known = documents.get(engine)
  if (known?.epoch === engine.registry.epoch()) return known.byPath
  const groups = Map.groupBy(engine.registry.all(), (definition) =>
    definition.group === '' ? `api/${definition.version}` : `apis/${groupVersionOf(definition)}`,
  )
  const byPath = new Map(
    [...groups].map(([path, definitions]) => {
      const text = JSON.stringify(documentOf(path, definitions))
      return [path, { text, hash: createHash('sha512').update(text).digest('hex').toUpperCase() }] as const
    }),
  )
  documents.set(engine, { epoch: engine.registry.epoch(), byPath })
  return byPath
}

/** `dev.svccloud.v1alpha1.Server`: the group reversed, as Kubernetes names the schemas of custom resources. */
const schemaName = ({ group, version, kind }: Pick<Definition, 'group' | 'version' | 'kind'>): string =>
  [...(group === '' ? ['io.k8s.api.core'] : [group.split('.').toReversed().join('.')]), version, kind].join('.')

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const LIST_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta'
/** Metadata and its parts as components, so that clients show their names. */
function metadataSchemas(): Record<string, Json> {
  const part = (name: string): string => `${OBJECT_META.slice(0, -'ObjectMeta'.length)}${name}`
  const listOf = (name: string): JsonObject => ({
    type: 'array',
    items: { allOf: [{ $ref: `#/components/schemas/${part(name)}` }] },
  })
  const { ownerReferences, managedFields, ...others } = METADATA_SCHEMA.properties ?? {}
  return {
    [OBJECT_META]: {
      ...METADATA_SCHEMA,
      properties: {
        ...others,
        ownerReferences: { ...ownerReferences, ...listOf('OwnerReference') },
        managedFields: { ...managedFields, ...listOf('ManagedFieldsEntry') },
      },
    },
    [part('OwnerReference')]: ownerReferences?.items ?? {},
    [part('ManagedFieldsEntry')]: {
      ...managedFields?.items,
      properties: {
        ...managedFields?.items?.properties,
        fieldsV1: { allOf: [{ $ref: `#/components/schemas/${part('FieldsV1')}` }] },
      },
    },
    [part('FieldsV1')]: { type: 'object', description: 'The fields, as a tree of names.' },
  }
}

const typed = ({ group, version }: Definition, kind: string): Json => [{ group, version, kind }]

function documentOf(path: string, definitions: readonly Definition[]): JsonObject {
  const schemas: Record<string, Json> = {
    ...metadataSchemas(),
    [LIST_META]: {
      type: 'object',
      properties: {
        resourceVersion: { type: 'string' },
        continue: { type: 'string' },
        remainingItemCount: { type: 'integer', format: 'int64' },
      },
    },
  }
  for (const definition of definitions) {
    const name = schemaName(definition)
    schemas[name] = objectSchema(definition)
    if (definition.storing === 'record') {
      schemas[`${name}List`] = {
        type: 'object',
        description: `${definition.listKind} is a list of ${definition.kind}`,
        required: ['items'],
        properties: {
          ...TYPE_MEMBERS,
          items: { type: 'array', items: { $ref: `#/components/schemas/${name}` } },
          metadata: { $ref: `#/components/schemas/${LIST_META}` },
        },
        'x-kubernetes-group-version-kind': typed(definition, definition.listKind),
      }
    }
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' },
    paths: Object.fromEntries(definitions.flatMap((definition) => Object.entries(pathsOf(path, definition)))),
    components: { schemas },
  }
}

const TYPE_MEMBERS: JsonObject = {
  apiVersion: {
    type: 'string',
    description:
      'APIVersion defines the versioned schema of this representation of an object. Servers should convert ' +
      'recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://' +
      'git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources',
  },
  kind: {
    type: 'string',
    description:
      'Kind is a string value representing the REST resource this object represents. Servers may infer this from ' +
      'the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://' +
      'git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds',
  },
}

function objectSchema(definition: Definition): JsonObject {
  const own: Schema = definition.schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    ...own,
    properties: {
      ...own.properties,
      ...TYPE_MEMBERS,
      metadata: {
        description:
          "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/" +
          'sig-architecture/api-conventions.md#metadata',
        allOf: [{ $ref: `#/components/schemas/${OBJECT_META}` }],
      },
    },
    'x-kubernetes-group-version-kind': typed(definition, definition.kind),
  }
}

const queryParameter = (name: string): JsonObject => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
})
const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation'].map(queryParameter)

function pathsOf(path: string, definition: Definition): JsonObject {
  const { group, version, kind, isNamespaced, resource, storing } = definition
  const base = `/${path}/${isNamespaced ? 'namespaces/{namespace}/' : ''}${resource}`
  const gvk = { group, version, kind }
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${schemaName(definition)}` } } }
  const operation = (action: string, isWrite: boolean): JsonObject => ({
    tags: [group === '' ? 'core_v1' : `${group.replaceAll('.', '_')}_${version}`],
    parameters: isWrite ? WRITE_PARAMETERS : [],
    responses: { 200: { description: 'OK', content } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  })
  const collection = {
    [base]: {
      ...(storing === 'record' ? { get: operation('list', false), delete: operation('deletecollection', false) } : {}),
      post: operation('post', true),
    },
  }
  if (storing === 'review') return collection
  return {
    ...collection,
    [`${base}/{name}`]: {
      get: operation('get', false),
      put: operation('put', true),
      patch: operation('patch', true),
      delete: operation('delete', false),
    },
  }
}

/** The catalog of a deployment: documents of Region, Zone, PublicPool, Plan, Price, Template and Node. Objects that are
 *  missing are created. A field of an existing object follows the catalog only while it has the value that the catalog
 *  gave it last: a value that an operator changed since stays, and is reported. Nothing is removed because the catalog
 *  lacks it. A Secret in the catalog is written to the platform's own namespace, where nodes refer to it. */
import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { type KubeObject, Secret } from '../../../kit/kube/object.ts'
import { ApiError, isAlreadyExists, type Store } from '../../../kit/kube/store.ts'
import type { Resource } from '../../../resources/kit/define.ts'
import { Node } from '../../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../../resources/catalog/index.ts'
import { SYSTEM_NAMESPACE } from '../../../resources/kit/labels.ts'
import { Price } from '../../../resources/price/index.ts'
import { PublicPool } from '../../../resources/public-pool/index.ts'

/** The kinds that it may contain besides Secrets. */
export const CATALOG_KINDS: readonly Resource[] = [Region, Zone, PublicPool, Plan, Price, Template, Node]
const CatalogObject = z.looseObject({
  kind: z.enum(['Region', 'Zone', 'PublicPool', 'Plan', 'Price', 'Template', 'Node']),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({}),
})
const CatalogSecret = z.looseObject({
  kind: z.literal('Secret'),
  metadata: z.looseObject({ name: z.string() }),
  stringData: z.record(z.string(), z.string()),
})

/** On each object that came from a catalog: the spec that the catalog gave it last, as JSON. */
export const CATALOG_ANNOTATION = 'svccloud.dev/catalog'

/** Answers one sentence for each remaining difference between the catalog and the stored objects. Throws with the
 *  document's name when it is not one of the catalog's kinds, or the API server refuses to create it. */
export async function installCatalog(store: Store, file: string): Promise<readonly string[]> {
  const documents = parseAllDocuments(await readFile(file, 'utf8')).map((document) =>
    z.discriminatedUnion('kind', [CatalogObject, CatalogSecret]).parse(document.toJS()),
  )
  const differences: string[] = []
  for (const document of documents) {
    if (document.kind === 'Secret') await installSecret(store, document)
    else differences.push(...(await installObject(store, document)))
  }
  return differences
}

type Spec = Readonly<Record<string, unknown>>

async function installObject(
  store: Store,
  { kind, metadata, spec }: z.infer<typeof CatalogObject>,
): Promise<readonly string[]> {
  const type = CATALOG_KINDS.find((known) => known.kind === kind)
  if (type === undefined) return []
  const complete = type.spec.parse(spec) as Spec // specs of kinds are objects
  const offered = Object.fromEntries(Object.keys(spec).map((field) => [field, complete[field]]))
  const record = { [CATALOG_ANNOTATION]: JSON.stringify(offered) }
  const stored = await store.get(type, metadata)
  if (stored !== undefined) return follow(store, { type, stored, offered, record })
  const annotations = { ...(metadata['annotations'] as object | undefined), ...record } // from the document
  try {
    await store.create(type, { metadata: { ...metadata, annotations }, spec: complete })
  } catch (error) {
    if (!isAlreadyExists(error)) throw new Error(`${kind} ${metadata.name} of the catalog is refused`, { cause: error })
  }
  return []
}

interface Following {
  readonly type: Resource
  readonly stored: KubeObject<unknown, unknown>
  readonly offered: Spec
  readonly record: Readonly<Record<string, string>>
}

/** Writes the fields that follow the catalog. */
async function follow(store: Store, { type, stored, offered, record }: Following): Promise<readonly string[]> {
  const { name, resourceVersion, annotations } = stored.metadata
  const read = type.spec.safeParse(stored.spec) // with the same defaults as the catalog's
  const current = (read.success ? read.data : stored.spec) as Spec // as above
  const last = givenBefore(annotations?.[CATALOG_ANNOTATION])
  const changed = Object.keys(offered).filter((field) => !isDeepStrictEqual(current[field], offered[field]))
  const followed = changed.filter((field) => isDeepStrictEqual(current[field], last[field]))
  const differences = changed
    .filter((field) => !followed.includes(field))
    .map((field) => `${type.kind} ${name}: ${field} differs from the catalog and stays as it is.`)
  const isRecorded = annotations?.[CATALOG_ANNOTATION] === record[CATALOG_ANNOTATION]
  if (followed.length === 0 && isRecorded) return differences
  const spec = Object.fromEntries(followed.map((field) => [field, offered[field]]))
  const patch = { metadata: { resourceVersion, annotations: record }, ...(followed.length === 0 ? {} : { spec }) }
  try {
    await store.patch(type, { name }, patch)
    return differences
  } catch (error) {
    // Another writer changed it meanwhile, or a field cannot be changed: the stored value stays, and the next start
    // tries again.
    if (!(error instanceof ApiError) || error.code >= 500) throw error
    return [...differences, `${type.kind} ${name}: ${followed.join(', ')} cannot follow the catalog: ${error.message}`]
  }
}

/** Without a record, an absent field counts as never given. */
function givenBefore(record: string | undefined): Spec {
  if (record === undefined) return {}
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(record))
  } catch {
    return {} // not written by us: nothing but absent fields follows
  }
}

async function installSecret(
  store: Store,
  { metadata: { name }, stringData }: z.infer<typeof CatalogSecret>,
): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  )
  try {
    await store.create(Secret, { metadata: { name, namespace: SYSTEM_NAMESPACE }, spec: undefined, data })
  } catch (error) {
    if (!isAlreadyExists(error)) throw new Error(`Secret ${name} of the catalog is refused`, { cause: error })
  }
}

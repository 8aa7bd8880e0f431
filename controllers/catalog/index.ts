/** The catalog that a deployment starts with: documents of Region, Zone, PublicPool, Plan, Price, Template and Node.
 *  What is missing is made; what is there is the operator's and stays. A Secret among them goes into the platform's own
 *  namespace, where nodes name it. */
import { readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { Secret } from '../../kit/kube/object.ts'
import { isAlreadyExists, type Store } from '../../kit/kube/store.ts'
import type { Resource } from '../../resources/define.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Region, Template, Zone } from '../../resources/catalog/index.ts'
import { SYSTEM_NAMESPACE } from '../../resources/labels.ts'
import { Price } from '../../resources/price/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'

/** What it may hold besides Secrets. */
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

/** Throws with the document's name when it is not one of the catalog's kinds, or refused by the API server. */
export async function installCatalog(store: Store, file: string): Promise<void> {
  const documents = parseAllDocuments(await readFile(file, 'utf8')).map((document) =>
    z.discriminatedUnion('kind', [CatalogObject, CatalogSecret]).parse(document.toJS()),
  )
  for (const document of documents) {
    if (document.kind === 'Secret') {
      await installSecret(store, document)
      continue
    }
    const { kind, metadata, spec } = document
    const type = CATALOG_KINDS.find((known) => known.kind === kind)
    if (type === undefined || (await store.get(type, metadata)) !== undefined) continue
    try {
      await store.create(type, { metadata, spec: type.spec.parse(spec) })
    } catch (error) {
      if (!isAlreadyExists(error))
        throw new Error(`${kind} ${metadata.name} of the catalog is refused`, { cause: error })
    }
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

/** The catalog that a deployment starts with: documents of Region, Zone, Plan, Template and Node. What is missing is made; what is there is
 *  the operator's and stays. */
import { readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { isAlreadyExists, type Store } from '../kit/kube/store.ts'
import type { Resource } from '../resources/define.ts'
import { Node, Plan, Region, Template, Zone } from '../resources/platform.ts'

const KINDS: readonly Resource[] = [Region, Zone, Plan, Template, Node]
const Document = z.looseObject({ kind: z.enum(['Region', 'Zone', 'Plan', 'Template', 'Node']), metadata: z.looseObject({ name: z.string() }), spec: z.looseObject({}) })

/** Throws with the document's name when it is not one of the catalog's kinds, or refused by the API server. */
export async function installCatalog(store: Store, file: string): Promise<void> {
  const documents = parseAllDocuments(await readFile(file, 'utf8')).map((document) => Document.parse(document.toJS()))
  for (const { kind, metadata, spec } of documents) {
    const type = KINDS.find((known) => known.kind === kind)
    if (type === undefined || (await store.get(type, metadata)) !== undefined) continue
    try {
      await store.create(type, { metadata, spec: type.spec.parse(spec) })
    } catch (error) {
      if (!isAlreadyExists(error)) throw new Error(`${kind} ${metadata.name} of the catalog is refused`, { cause: error })
    }
  }
}

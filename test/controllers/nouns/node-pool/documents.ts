/** What hosts are handed for the nodes of a pool, as the guests would read it. */
import { KUBERNETES_NODE_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import { Template } from '../../../../resources/catalog/index.ts'
import { MACHINE_DOCUMENT_KEY, MachineDocument, ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import type { Cloud } from '../../cloud.ts'

export type NodeDocument = NonNullable<MachineDocument['kubernetes']>

/** Servers of nodes are made of it here. */
export async function offerNodes({ kubectl }: Cloud): Promise<void> {
  const { spec } = (await kubectl.get(Template, { name: 'tiny-linux' })) ?? {}
  if (spec !== undefined) await kubectl.create(Template, { metadata: { name: KUBERNETES_NODE_TEMPLATE }, spec })
}

/** Of machines that are not on their way out, by the name of the node. */
export async function documentsOf({ kubectl }: Cloud, poolId: string): Promise<ReadonlyMap<string, NodeDocument>> {
  const machines = (await kubectl.list(ManagedMachine, {})).items.filter(
    ({ metadata, spec }) => spec.managedBy === `node_pool:${poolId}` && metadata.deletionTimestamp === undefined,
  )
  const found = new Map<string, NodeDocument>()
  for (const { metadata, spec } of machines) {
    if (spec.configuration === undefined) continue
    const { secretName: name } = spec.configuration
    const text = (await kubectl.get(Secret, { namespace: metadata.namespace ?? '', name }))?.data?.[
      MACHINE_DOCUMENT_KEY
    ]
    if (text === undefined) continue
    const { kubernetes } = MachineDocument.parse(JSON.parse(Buffer.from(text, 'base64').toString()))
    if (kubernetes !== undefined) found.set(kubernetes.nodeName, kubernetes)
  }
  return found
}

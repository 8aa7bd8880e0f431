/** Operators with kubectl, while everything is shaken: nodes are closed, emptied and opened again, storages are moved
 *  to other nodes and tiers, and the disks of nodes drained. And what must hold of an empty node. */
import { activeOperation, derivedStanza } from '../../controllers/kit/operation/stanza.ts'
import type { Database } from '../../db/kit/open.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Instance, nodeNamespace } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import type { Operable } from '../../resources/operation/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import type { World } from './world.ts'

export function runOperators({ scheduler, admin, hosts }: World, isOver: () => boolean): void {
  const { random } = scheduler

  void scheduler.repeat({ least: 2_000, most: 12_000 }, isOver, async () => {
    const host = scheduler.pick(hosts)
    if (host === undefined) return
    const dice = random.fraction()
    const spec =
      dice < 0.15
        ? { isCordoned: true }
        : dice < 0.5
          ? { isCordoned: true, isInMaintenance: true }
          : { isCordoned: false, isInMaintenance: false }
    // what may not be changed now is the operator's error, not ours
    await admin.patch(Node, { name: host.name }, { spec }).catch(() => {})
  })
}

/** Hosts that were closed are open again: what waits for room gets some. */
export async function openNodes({ admin, hosts }: World): Promise<void> {
  for (const { name } of hosts)
    await admin.patch(Node, { name }, { spec: { isCordoned: false, isInMaintenance: false } })
}

/** What the operators' routes write, without a request: the reconciler audits it. */
export function runStorageMoves({ scheduler, admin, hosts }: World, isOver: () => boolean): void {
  const { random } = scheduler
  const begun = (kind: OperationKind, { metadata, spec, status }: KubeObject<Operable['spec'], Operable['status']>) =>
    activeOperation({ spec, status }) === undefined && metadata.deletionTimestamp === undefined
      ? derivedStanza(kind, {
          seed: `${metadata.uid}/${metadata.generation}/sim`,
          actor: 'operator',
          now: scheduler.now(),
        })
      : undefined

  void scheduler.repeat({ least: 2_000, most: 10_000 }, isOver, async () => {
    const storage = scheduler.pick((await admin.list(Storage).catch(() => ({ items: [] }))).items)
    const { nodeName, state } = storage?.status ?? {}
    const operation = storage === undefined ? undefined : begun('storage.move', storage)
    if (storage === undefined || operation === undefined || nodeName === undefined || state !== 'online') return
    const target = scheduler.pick(hosts)?.name
    const args = {
      source_node_id: nodeName,
      ...(random.fraction() < 0.4 ? { tier: storage.spec.tier === 'standard' ? 'local-nvme' : 'standard' } : {}),
      ...(random.fraction() < 0.5 && target !== undefined && target !== nodeName ? { target_node_id: target } : {}),
    }
    const { namespace = '', name, resourceVersion } = storage.metadata
    await admin
      .patch(
        Storage,
        { namespace, name },
        { metadata: { resourceVersion }, spec: { operation: { ...operation, arguments: args } } },
      )
      .catch(() => {})
  })

  void scheduler.repeat({ least: 8_000, most: 40_000 }, isOver, async () => {
    const host = scheduler.pick(hosts)
    const node = host && (await admin.get(Node, { name: host.name }).catch(() => undefined))
    const operation = node && begun('storage.drain_host', node)
    if (node === undefined || operation === undefined) return
    const { name, resourceVersion } = node.metadata
    await admin
      .patch(Node, { name }, { metadata: { resourceVersion }, spec: { isCordoned: true, operation } })
      .catch(() => {})
  })
}

/** A node that its status calls empty has nothing of any server, and nothing is on its way there. */
export async function checkEmptyNodes({ admin }: World, db: Database): Promise<string[]> {
  const { items: nodes } = await admin.list(Node)
  const { items: instances } = await admin.list(Instance)
  const placements = await db.selectFrom('placement').select(['node', 'server_id']).execute()
  return nodes
    .filter(({ status }) => status?.isInMaintenance === true)
    .flatMap(({ metadata: { name } }) => [
      ...placements
        .filter(({ node }) => node === name)
        .map(({ server_id }) => `node ${name} is in maintenance, and server ${server_id} is placed there`),
      ...instances
        .filter(({ metadata }) => metadata.namespace === nodeNamespace(name))
        .map(({ metadata }) => `node ${name} is in maintenance, and has instance ${metadata.name}`),
    ])
}

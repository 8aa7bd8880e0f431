/** Operators with kubectl, while everything is shaken: nodes are closed, emptied and opened again. And what must hold
 *  of an empty node. */
import type { Database } from '../../db/open.ts'
import { Instance, nodeNamespace } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
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

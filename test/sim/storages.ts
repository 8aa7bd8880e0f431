/** Storages that are made, given to servers, taken away, made larger and deleted while everything is shaken, and what
 *  must hold of them afterwards. */
import type { Database } from '../../db/kit/open.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, Volume } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { isForSafety, Snapshot } from '../../resources/snapshot/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { ZONES } from './catalog.ts'
import type { Account, Send } from './requests.ts'
import type { World } from './world.ts'

export function runStorages(world: World, accounts: readonly Account[], send: Send, isOver: () => boolean): void {
  const { scheduler } = world
  const { random } = scheduler
  const storages = new Map<string, Set<string>>(accounts.map(({ id }) => [id, new Set()]))
  const customer = () =>
    scheduler.repeat({ least: 300, most: 3_300 }, isOver, async () => {
      const account = scheduler.pick(accounts)
      if (account === undefined) return
      const server = scheduler.pick([...account.servers])
      const storage = scheduler.pick([...(storages.get(account.id) ?? [])])
      const dice = random.fraction()
      const path = `/v1/storages/${storage}`
      if (storage === undefined || dice < 0.2) {
        const made = await send(account, 'POST', '/v1/storages', {
          zone: scheduler.pick(ZONES),
          size_gibibytes: 1,
          tier: scheduler.pick(['standard', 'standard', 'local-nvme']),
          ...(server !== undefined && random.fraction() < 0.5 ? { server_id: server } : {}),
        })
        const id = (made as { readonly storage?: { readonly id: string } } | undefined)?.storage?.id
        if (id !== undefined) storages.get(account.id)?.add(id)
      } else if (dice < 0.5 && server !== undefined)
        await send(account, 'POST', `${path}/attach`, { server_id: server })
      else if (dice < 0.72) await send(account, 'POST', `${path}/detach`, { force: random.fraction() < 0.3 })
      else if (dice < 0.8) await send(account, 'POST', `${path}/resize`, { size_gibibytes: 2 })
      else if (dice < 0.9) await send(account, 'PATCH', path, { title: `title ${Math.round(dice * 1_000)}` })
      else await send(account, 'DELETE', path)
    })
  void customer()
  void customer()
  void snapshotter(world, { accounts, storages, send, isOver })
}

interface Snapshotting {
  readonly accounts: readonly Account[]
  /** By account. */
  readonly storages: ReadonlyMap<string, Set<string>>
  readonly send: Send
  readonly isOver: () => boolean
}

/** Takes and deletes snapshots of storages, of those that servers boot from too, and makes storages from both. */
function snapshotter({ scheduler, admin }: World, { accounts, storages, send, isOver }: Snapshotting): unknown {
  const { random } = scheduler
  const snapshots = new Map<string, Set<string>>(accounts.map(({ id }) => [id, new Set()]))
  return scheduler.repeat({ least: 600, most: 5_000 }, isOver, async () => {
    const account = scheduler.pick(accounts)
    if (account === undefined) return
    const { items } = await admin
      .list(Storage, { namespace: accountNamespace(account.id) })
      .catch(() => ({ items: [] }))
    const boots = items.filter(({ spec }) => spec.isBoot).map(({ metadata }) => metadata.name)
    const storage = scheduler.pick([...(storages.get(account.id) ?? []), ...boots])
    const snapshot = scheduler.pick([...(snapshots.get(account.id) ?? [])])
    const dice = random.fraction()
    if (storage !== undefined && (snapshot === undefined || dice < 0.35)) {
      const made = await send(account, 'POST', `/v1/storages/${storage}/snapshots`, {})
      const id = (made as { readonly snapshot?: { readonly id: string } } | undefined)?.snapshot?.id
      if (id !== undefined) snapshots.get(account.id)?.add(id)
    } else if (snapshot !== undefined && dice < 0.7) await send(account, 'DELETE', `/v1/snapshots/${snapshot}`)
    else if (storage !== undefined) {
      const source = dice < 0.85 ? { source_snapshot_id: snapshot } : { source_storage_id: storage }
      const made = await send(account, 'POST', '/v1/storages', source)
      const id = (made as { readonly storage?: { readonly id: string } } | undefined)?.storage?.id
      if (id !== undefined) storages.get(account.id)?.add(id)
    }
  })
}

/** Claims are those of the storages that exist, each node counts exactly what is on it, and a server has the disks that
 *  are attached to it and no others. */
export async function checkStorages(world: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const { items } = await world.admin.list(Storage)
  const claims = await db.selectFrom('storage_claim').selectAll().execute()
  const keyOf = (accountId: string, name: string) => `${accountNamespace(accountId)}/${name}`
  const alive = new Map(items.map((storage) => [`${storage.metadata.namespace}/${storage.metadata.name}`, storage]))
  for (const claim of claims) {
    const storage = alive.get(keyOf(claim.account_id, claim.storage_id))
    if (storage === undefined) violations.push(`room is held for storage ${claim.storage_id}, which does not exist`)
    else if (claim.phase === 'arriving' || claim.phase === 'leaving')
      violations.push(`storage ${claim.storage_id} came to rest as ${claim.phase}`)
    else if ((storage.spec.serverId ?? null) !== claim.server_id)
      violations.push(
        `storage ${claim.storage_id} shall be at ${storage.spec.serverId ?? 'no server'} and is at ` +
          `${claim.server_id ?? 'none'}`,
      )
    else if (storage.spec.sizeGibibytes !== claim.size_gibibytes)
      violations.push(
        `storage ${claim.storage_id} shall have ${storage.spec.sizeGibibytes} GiB and holds ${claim.size_gibibytes}`,
      )
  }
  for (const { metadata, spec } of (await world.admin.list(Volume)).items)
    if (spec.pool !== undefined && items.find((one) => one.metadata.uid === metadata.name)?.spec.tier === 'local-nvme')
      violations.push(`disk ${metadata.name} is of tier local-nvme, and lies on ${spec.pool}`)
  const { items: servers } = await world.admin.list(Server)
  for (const { metadata, spec } of (await world.admin.list(Instance)).items) {
    const server = servers.find((one) => one.metadata.uid === metadata.name)
    const attached = claims.filter(
      (claim) =>
        claim.phase === 'attached' &&
        server?.metadata.namespace === accountNamespace(claim.account_id) &&
        server.metadata.name === claim.server_id,
    )
    const [has, shall] = [spec.disks.slice(1).map(({ volume }) => volume), attached.map(({ volume }) => volume ?? '')]
    if (server !== undefined && has.toSorted().join() !== shall.toSorted().join())
      violations.push(`server ${server.metadata.name} shall have the disks ${shall.join()} and has ${has.join()}`)
  }
  const placements = await db.selectFrom('placement').selectAll().execute()
  for (const node of await db.selectFrom('node_capacity').selectAll().execute()) {
    const ofServers = placements
      .filter((placement) => placement.node === node.node)
      .reduce((sum, placement) => sum + placement.storage_gibibytes + placement.attached_gibibytes, 0)
    const ofStorages = claims
      .filter((claim) => claim.node === node.node && claim.has_room)
      .reduce((sum, claim) => sum + claim.size_gibibytes, 0)
    // room on its way: there must be none at rest
    violations.push(
      ...claims
        .filter((claim) => claim.target_node === node.node)
        .map((claim) => `storage ${claim.storage_id} came to rest on its way to ${node.node}`),
    )
    if (ofServers + ofStorages !== node.storage_gibibytes_used)
      violations.push(
        `node ${node.node} counts ${node.storage_gibibytes_used} GiB used, and ${ofServers + ofStorages} lie there`,
      )
  }
  for (const placement of placements) {
    const attached = claims
      .filter((claim) => claim.account_id === placement.account_id && claim.server_id === placement.server_id)
      .reduce((sum, claim) => sum + (claim.phase === 'leaving' ? 0 : claim.size_gibibytes), 0)
    if (attached !== placement.attached_gibibytes)
      violations.push(
        `server ${placement.server_id} holds ${placement.attached_gibibytes} GiB for its storages of ${attached}`,
      )
  }
  return violations
}

/** Every snapshot that is online is in the disk of its storage, no disk has one that nobody knows, and what keeps
 *  storages are the snapshots that there are. */
export async function checkSnapshots(world: World, db: Database): Promise<string[]> {
  const { items: snapshots } = await world.admin.list(Snapshot)
  const { items: storages } = await world.admin.list(Storage)
  const { items: volumes } = await world.admin.list(Volume)
  const kept = volumes.flatMap(({ spec, status }) =>
    (status?.snapshots ?? []).map(({ name }) => `${spec.storage.uid} ${name}`),
  )
  const violations = snapshots.flatMap(({ metadata, spec, status }) => {
    const storage = storages.find(
      (one) => one.metadata.namespace === metadata.namespace && one.metadata.name === spec.storageId,
    )
    if (status?.state !== 'online') return []
    if (storage === undefined) return [`snapshot ${metadata.name} has outlived its storage`]
    return kept.includes(`${storage.metadata.uid} ${metadata.uid}`)
      ? []
      : [`snapshot ${metadata.name} is not in the disk of its storage`]
  })
  const known = new Set(snapshots.map(({ metadata }) => metadata.uid))
  for (const line of kept)
    if (!known.has(line.slice(line.indexOf(' ') + 1))) violations.push(`nobody knows snapshot ${line} in a disk`)
  const names = new Set(
    snapshots.map(
      ({ metadata: { namespace, name }, spec }) => `${namespace} ${isForSafety(spec) ? 'safety' : 'snapshot'}/${name}`,
    ),
  )
  for (const { account_id: accountId, holder } of await db.selectFrom('storage_hold').selectAll().execute())
    if (!names.has(`${accountNamespace(accountId)} ${holder}`)) violations.push(`${holder} keeps a storage for nothing`)
  return violations
}

/** What the stores know that servers use, just after they went back. */
import { sql } from 'kysely'
import type { Database } from '../../db/kit/open.ts'
import type { LoadedState } from '../../embedded/kubernetes/storage/storage.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, type InstanceSpec, nodeOf } from '../../resources/instance/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { addressUse, hostnameUse, roomUse, useOf, usesOnHost } from './uses.ts'

const [INSTANCES, SERVERS] = [Instance, Server].map(({ group, plural }) => `${group}/${plural}`)

interface ServerLike {
  readonly spec: ServerSpec
  readonly status?: ServerStatus
}

/** In the words of `useOf`. */
export async function knownUses({ snapshot }: LoadedState, db: Database): Promise<ReadonlySet<string>> {
  const ofKubernetes = snapshot.flatMap(({ storageKey, object }) => {
    if (object === undefined) return []
    const { namespace = '', name } = object.metadata
    if (storageKey === INSTANCES) {
      const spec = object['spec'] as InstanceSpec // of the kind's own schema
      const host = nodeOf({ metadata: { namespace } })
      return [...usesOnHost(host, spec), roomUse(host)].map((use) => useOf(spec.server, use))
    }
    if (storageKey !== SERVERS) return []
    const { spec, status } = object as unknown as ServerLike // as above
    const addresses = [status?.publicIpv4, status?.publicIpv6].filter((one) => one !== undefined)
    return [hostnameUse(spec.hostname, namespace, spec.zone), ...addresses.map(addressUse)].map((use) =>
      useOf({ namespace, name }, use),
    )
  })
  return new Set([...ofKubernetes, ...(await usesInDatabase(db))])
}

interface HeldRow {
  readonly kind: string
  readonly scope: string
  readonly value: string
  readonly account: string
  readonly server: string
}

async function usesInDatabase(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<HeldRow>`
    select kind, scope, value, account_id::text as account, split_part(holder, '/', 2) as server
    from (
      select kind, scope, value, account_id, holder from address_claim
      union all select kind, scope, value, account_id, holder from host_use
      union all select 'address', '', address, account_id, holder from public_address where holder is not null
      union all select 'room', '', node, account_id, 'server/' || server_id from placement
      union all select 'room', '', node, account_id, 'server/' || server_id from placement_target
    ) as held
    where split_part(holder, '/', 1) in ('server', 'server_arriving') and kind in ('hostname', 'address', 'room')
    order by 1, 2, 3, 4, 5`.execute(db)
  return rows.map(({ kind, scope, value, account, server }) => {
    const namespace = accountNamespace(account)
    const use =
      kind === 'room'
        ? roomUse(value)
        : kind === 'address'
          ? addressUse(value)
          : hostnameUse(value, namespace, scope.split('/')[1] ?? '')
    return useOf({ namespace, name: server }, use)
  })
}

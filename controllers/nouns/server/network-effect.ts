/** Programs the zone's network for servers, and removes them from it. */
import { findFloatingIp } from '../../../db/floating-ip/index.ts'
import { unassignFrom } from '../../../db/network-interface/index.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import type { ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectOn } from '../../kit/effects.ts'
import { floatingIpOwner, publicPortOwner, serverOwner } from '../../network/ovn/difference.ts'
import { firewallRows } from '../../network/ovn/firewall.ts'
import { interfaceRows } from '../../network/ovn/interface.ts'
import type { Row } from '../../network/ovn/row.ts'
import type { Parts } from '../../kit/parts.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import type { ServerEffects, NetworkPorts } from './actions.ts'
import type { ServerObject } from './observed.ts'
import { fingerprintOf } from './network-ports.ts'

type Effect<Name extends keyof ServerEffects> = EffectOn<ServerEffects[Name], ServerSpec, ServerStatus>

/** The fingerprint with which this process has programmed each server, by uid. What another process did is repeated,
 *  which costs nothing when it is in place. */
export type ProgrammedServers = Map<string, string>

const rowsOf = ({ uid, interfaces, firewall }: NetworkPorts): readonly Row[] => [
  ...interfaces.flatMap(interfaceRows),
  ...firewallRows(uid, firewall),
]

/** A network that does not answer blocks nothing else: it is tried again. */
export const programEffect = ({ ovn, log, clock }: Parts, programmed: ProgrammedServers): Effect<'program'> => {
  const outages = new Outages({ log, clock }, 'the network was not programmed for a server')
  return async (networkPorts, server) => {
    const { zone, uid, nodes, isSimulated } = networkPorts
    const fingerprint = fingerprintOf(networkPorts)
    const before = server.status?.networkPorts
    const isRepeated = before?.fingerprint === fingerprint && programmed.get(uid) === fingerprint
    const apply = async () => {
      if (before !== undefined && before.zone !== zone)
        await ovn?.apply({ zone: before.zone, owner: serverOwner(uid), rows: [] })
      if (ovn === undefined) {
        programmed.set(uid, fingerprint)
        return { sequence: 0, isInstalled: isSimulated }
      }
      const written = await ovn.apply({ zone, owner: serverOwner(uid), rows: rowsOf(networkPorts) })
      programmed.set(uid, fingerprint)
      // The wait is for the first write: the sequence of a repeated write does not extend it.
      const sequence = isRepeated ? Math.min(before.sequence, written.sequence) : written.sequence
      const installed = isSimulated ? sequence : await ovn.installed(nodes)
      return { sequence, isInstalled: installed !== undefined && installed >= sequence }
    }
    try {
      const applied = await apply()
      outages.over(uid)
      return { status: { networkPorts: { zone, fingerprint, ...applied } } }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      outages.failed(error, { server: server.metadata.name }, uid)
      return { status: { networkPorts: { zone, fingerprint, sequence: before?.sequence ?? 0, isInstalled: false } } }
    }
  }
}

/** Removes the rows of the server, which has room in the zone, also rows that were written but never recorded. */
export async function unprogram(
  { ovn }: Parts,
  { metadata: { uid = '' }, status }: ServerObject,
  zone: string | undefined,
): Promise<void> {
  const zones = new Set([zone, status?.networkPorts?.zone].filter((one) => one !== undefined))
  for (const each of zones)
    for (const owner of [publicPortOwner(uid), serverOwner(uid)]) await ovn?.apply({ zone: each, owner, rows: [] })
}

/** Floating IPs of the server point nowhere from now on: its public address may soon belong to another server. */
export async function unforward(
  { ovn, db, caches }: Parts,
  { metadata: { namespace = '', name } }: ServerObject,
  accountId: string,
): Promise<void> {
  await orUnavailable(unassignFrom(db, { accountId, serverId: name }))
  for (const { metadata, spec, status } of caches.of(FloatingIp).inNamespace(namespace)) {
    if (spec.serverId !== name && status?.serverId !== name) continue
    const claim = await orUnavailable(findFloatingIp(db, { accountId, floatingIpId: metadata.name }))
    if (claim?.serverId === undefined)
      await ovn?.apply({ zone: spec.zone, owner: floatingIpOwner(metadata.uid ?? ''), rows: [] })
  }
}

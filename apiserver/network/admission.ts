/** Private networks that people make, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: that is the controller's part, once the object is there. */
import { idleFactsOf } from '../../resources/operation/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import { badField } from '../../domain/problem.ts'
import { claimNetwork, endNetwork, renameNetwork } from '../../db/network/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { DnsServers, Ipv4Range, Network, type NetworkSpec, type NetworkStatus } from '../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireVerifiedOwner } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireField, requireLabels, requirePrintableName } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import type { NetworkObject } from './networks.ts'
import { requirePrivateNetworks } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'network',
  finalizer: finalizerOf(Network),
  goesWhen: 'nothing of the network is left',
}

function requireReadable({ name, labels, ipv4Cidr, dnsServers }: NetworkSpec): void {
  requirePrintableName({ name })
  requireLabels({ labels })
  if (ipv4Cidr !== undefined) requireField('spec.ipv4Cidr', Ipv4Range, ipv4Cidr)
  requireField('spec.dnsServers', DnsServers, dnsServers)
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, network: NetworkObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: networkId },
    spec,
  } = network
  const accountId = await requireAccount(parts, network, 'networks')
  denyPlatformFields(network, undefined, PLATFORM)
  requireReadable(spec)
  requirePrivateNetworks(parts, spec.zone, 'spec.zone')
  await requireVerifiedOwner(parts, accountId)
  const { zone, name, ipv4Cidr } = spec
  await rehearse(parts, (tx) => claimNetwork(tx, { accountId, networkId, zone, name, ipv4Cidr }, parts.random))
  return [{ action: 'network.create', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  network: NetworkObject,
  before: NetworkObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(network, before, PLATFORM)
  const {
    metadata: { name: networkId, namespace = '' },
    spec,
  } = network
  const isChanged = (field: keyof NetworkSpec): boolean => !isDeepStrictEqual(spec[field], before.spec[field])
  if (isChanged('zone')) throw badField('spec.zone', 'cannot be changed')
  if (isChanged('ipv4Cidr')) throw badField('spec.ipv4Cidr', 'cannot be changed')
  requireReadable(spec)
  const tellsHosts = isChanged('dnsServers') || isChanged('dhcpEnabled')
  if (tellsHosts) requireIdle('network', idleFactsOf(storedOf(before)))
  const accountId = accountOfNamespace(namespace)
  if (isChanged('name') && accountId !== undefined)
    await rehearse(parts, (tx) => renameNetwork(tx, { accountId, networkId }, spec.name))
  const changes = changesOf(['name', 'labels'], spec, before.spec)
  return [
    ...(tellsHosts ? [{ action: 'network.sync' as const, changes: [] }] : []),
    ...(changes.length > 0 ? [{ action: 'network.update' as const, changes }] : []),
  ]
}

export const networkAdmission: AdmissionRules<NetworkSpec, NetworkStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('network.delete', async (before, parts) => {
    requireDeletable('network', idleFactsOf(storedOf(before)))
    const { namespace = '', name: networkId } = before.metadata
    const accountId = accountOfNamespace(namespace)
    if (accountId !== undefined) await rehearse(parts, (tx) => endNetwork(tx, { accountId, networkId }))
  }),
  reads: [Zone],
}

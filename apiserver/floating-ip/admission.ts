/** Floating IPs that people make, change and delete past the API must satisfy its rules. Everything is checked and
 *  nothing is claimed: that is the controller's part, once the object is there. */
import { requireAssignable, requireReleasable } from '../../domain/floating-ip.ts'
import { badField, forbidden } from '../../domain/problem.ts'
import { assignFloatingIp, type Assignment, claimFloatingIp } from '../../db/floating-ip/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  FloatingIp,
  floatingIpFactsOf,
  type FloatingIpSpec,
  type FloatingIpStatus,
} from '../../resources/floating-ip/index.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { Server } from '../../resources/server/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { FloatingIpObject } from './floating-ips.ts'

const PLATFORM: PlatformFields = {
  noun: 'floating IP',
  finalizer: finalizerOf(FloatingIp),
  goesWhen: 'nothing leads from its address any more',
}

function assignmentOf({ serverId, target = 'public' }: FloatingIpSpec): Assignment | undefined {
  if (serverId === undefined) return undefined
  return { serverId, target }
}

function requireReadable({ serverId, target }: FloatingIpSpec): void {
  if (serverId === undefined && target !== undefined)
    throw badField('spec.target', 'cannot be given without spec.serverId')
}

/** Throws the Problem that the API would answer. The server may come later: the floating IP waits for it. */
async function validateCreation(
  parts: AdmissionParts,
  floatingIp: FloatingIpObject,
): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: floatingIpId, namespace = '' },
    spec,
  } = floatingIp
  const accountId = await requireAccount(parts, floatingIp, 'floating IPs')
  denyPlatformFields(floatingIp, undefined, PLATFORM)
  if (spec.address !== undefined) throw forbidden('spec.address is written by the platform only.')
  requireReadable(spec)
  requirePrivateNetworks(parts, spec.zone, 'spec.zone')
  await requireStanding(parts, accountId)
  const assignment = assignmentOf(spec)
  const isServerThere =
    assignment !== undefined && parts.caches.of(Server).get({ namespace, name: assignment.serverId }) !== undefined
  const { zone } = spec
  await rehearse(parts, (tx) =>
    claimFloatingIp(tx, { accountId, floatingIpId, zone, ...(isServerThere ? { assignment } : {}) }),
  )
  return [{ action: 'floating_ip.sync', changes: [] }]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  floatingIp: FloatingIpObject,
  before: FloatingIpObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(floatingIp, before, PLATFORM)
  const {
    metadata: { name: floatingIpId, namespace = '' },
    spec,
  } = floatingIp
  if (spec.zone !== before.spec.zone) throw badField('spec.zone', 'cannot be changed')
  if (spec.address !== before.spec.address) throw forbidden('spec.address is written by the platform only.')
  if (spec.serverId === before.spec.serverId && spec.target === before.spec.target) return []
  requireReadable(spec)
  requireAssignable(floatingIpFactsOf(storedOf(before)))
  const accountId = accountOfNamespace(namespace) ?? ''
  await rehearse(parts, (tx) => assignFloatingIp(tx, { accountId, floatingIpId, assignment: assignmentOf(spec) }))
  return [{ action: 'floating_ip.sync', changes: [] }]
}

export const floatingIpAdmission: AdmissionRules<FloatingIpSpec, FloatingIpStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('floating_ip.release', (before) => requireReleasable(floatingIpFactsOf(storedOf(before)))),
  reads: [Zone, Server],
}

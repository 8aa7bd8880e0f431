/** Routers that people make, change and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: that is the controller's part, once the object is there. */
import { idleFactsOf } from '../../resources/operation/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { requireDeletable, requireIdle } from '../../domain/idle-rules.ts'
import { badField } from '../../domain/problem.ts'
import { claimRouter, endRouter, renameRouter } from '../../db/router/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { Router, type RouterSpec, type RouterStatus } from '../../resources/router/index.ts'
import { Printable } from '../../resources/shapes.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireField, requireLabels, requirePrintableName } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { RouterObject } from './routers.ts'
import { requireRoutes } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'router',
  finalizer: finalizerOf(Router),
  goesWhen: 'nothing of the router is left',
}

const FIELDS = { routes: 'spec.staticRoutes', destination: 'destination', nextHop: 'nextHop' }

function requireReadable({ name, labels, staticRoutes }: RouterSpec): void {
  requirePrintableName({ name })
  requireLabels({ labels })
  for (const [index, { comment }] of staticRoutes.entries())
    requireField(`spec.staticRoutes.${index}.comment`, Printable, comment)
}

/** Networks of the same manifest may come later, or have claimed nothing yet: the router waits for them. */
const knownOf = ({ caches }: AdmissionParts, { metadata: { namespace = '' }, spec }: RouterObject): readonly string[] =>
  spec.networkIds.filter((name) => caches.of(Network).get({ namespace, name })?.status?.ipv6Prefix !== undefined)

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, router: RouterObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: routerId, namespace = '' },
    spec,
  } = router
  const accountId = await requireAccount(parts, router, 'routers')
  denyPlatformFields(router, undefined, PLATFORM)
  requireReadable(spec)
  requireRoutes({ caches: parts.caches, namespace }, spec, FIELDS)
  requirePrivateNetworks(parts, spec.zone, 'spec.zone')
  await requireStanding(parts, accountId)
  await rehearseClaim(parts, router, { accountId, routerId })
  return [{ action: 'router.create', changes: [] }]
}

const rehearseClaim = (
  parts: AdmissionParts,
  router: RouterObject,
  id: { readonly accountId: string; readonly routerId: string },
): Promise<void> =>
  rehearse(parts, (tx) =>
    claimRouter(tx, { ...id, ...router.spec, networkIds: knownOf(parts, router), field: 'spec.networkIds' }),
  )

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  router: RouterObject,
  before: RouterObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(router, before, PLATFORM)
  const {
    metadata: { name: routerId, namespace = '' },
    spec,
  } = router
  const isChanged = (field: keyof RouterSpec): boolean => !isDeepStrictEqual(spec[field], before.spec[field])
  if (isChanged('zone')) throw badField('spec.zone', 'cannot be changed')
  requireReadable(spec)
  const leadsElsewhere = isChanged('natEnabled') || isChanged('staticRoutes') || isChanged('networkIds')
  const accountId = accountOfNamespace(namespace)
  if (leadsElsewhere) {
    requireIdle('router', idleFactsOf(storedOf(before)))
    if (isChanged('staticRoutes') || isChanged('natEnabled'))
      requireRoutes({ caches: parts.caches, namespace }, spec, FIELDS)
    if (accountId !== undefined) {
      if (spec.natEnabled && !before.spec.natEnabled) await requireStanding(parts, accountId)
      await rehearseClaim(parts, router, { accountId, routerId })
    }
  } else if (isChanged('name') && accountId !== undefined)
    await rehearse(parts, (tx) => renameRouter(tx, { accountId, routerId }, spec.name))
  const changes = changesOf(['name', 'labels'], spec, before.spec)
  return [
    ...(leadsElsewhere ? [{ action: 'router.sync' as const, changes: [] }] : []),
    ...(changes.length > 0 ? [{ action: 'router.update' as const, changes }] : []),
  ]
}

export const routerAdmission: AdmissionRules<RouterSpec, RouterStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('router.delete', async (before, parts) => {
    requireDeletable('router', idleFactsOf(storedOf(before)))
    const { namespace = '', name: routerId } = before.metadata
    const accountId = accountOfNamespace(namespace)
    if (accountId !== undefined) await rehearse(parts, (tx) => endRouter(tx, { accountId, routerId }))
  }),
  reads: [Zone, Network],
}

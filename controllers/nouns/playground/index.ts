/** The controller of playgrounds: its watches, what it reads, and its effects. `plan.ts` decides. */
import { defined } from '../../../domain/defined.ts'
import { TOKEN_ISSUER_URL } from '../../../domain/kubernetes-cluster/rules.ts'
import { newPlayground, PLAYGROUND_LIMITS, PLAYGROUND_RANGES } from '../../../domain/playground/rules.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { ensureIssuer } from '../../../db/kubernetes-cluster/index.ts'
import {
  claimPlayground,
  closePlayground,
  endPlayground,
  findPlayground,
  forgetPlayground,
  notePlaygroundReady,
  type Playground as Row,
} from '../../../db/playground/index.ts'
import { listKubernetesRequests } from '../../../db/request/index.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlaneDesired, ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { guestRelease } from '../../../integrations/control-planes/guests.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import { Playground, type PlaygroundSpec, type PlaygroundStatus } from '../../../resources/playground/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller, type IntentHandler } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { CLAIMED, HOSTED, type Observed, plan, type PlaygroundEffects, type PlaygroundObject } from './plan.ts'

/** The parts of every controller, and those of this one. */
type AllParts = Parts & { readonly sealing?: Sealing }

const DIGITS = 12

/** How an unfinished change shows: an end by the object that is being deleted, a start by the annotation. */
const intent: IntentHandler = {
  resourceType: 'playground',
  async wasApplied({ store }, { operationId, accountId, resource, audit }) {
    const found = await store.get(Playground, { namespace: accountNamespace(accountId), name: resource.id })
    // An end is never reverted: what its row says is carried out, whoever deletes the object.
    if (audit.action === 'playground.end') return true
    return found?.metadata.annotations?.[LAST_CHANGE_ANNOTATION] === operationId
  },
  async release(tx, { accountId, resource, audit }) {
    if (audit.action === 'playground.start') await forgetPlayground(tx, { accountId, playgroundId: resource.id })
  },
}

export const playgroundController = controller<PlaygroundEffects>()({
  name: 'playground',
  resource: Playground,
  sharding: 'common',
  finalizer: finalizerOf(Playground),
  intent,
  plan,
  reads: [],
  // A playground that has ended is deleted here.
  writes: [Playground],
  open: (parts: AllParts) => ({
    watches: [],
    observe: (playground) => observe(parts, playground),
    effects: effectsOf(parts),
  }),
})

async function observe(parts: AllParts, { metadata, status }: PlaygroundObject): Promise<Observed> {
  const { db } = parts
  const { namespace = '', name: playgroundId, uid = '', generation = 0 } = metadata
  const after = status?.observedGeneration ?? 0
  const accountId = await findAccountOf(db, namespace)
  const row = accountId === undefined ? undefined : await orUnavailable(findPlayground(db, { accountId, playgroundId }))
  return {
    accountId,
    row,
    host: row === undefined ? { obstacle: 'its claim' } : await hostViewOf(parts, row),
    requests:
      generation > after ? await orUnavailable(listKubernetesRequests(db, uid, { after, upTo: generation })) : [],
  }
}

async function hostViewOf({ controlPlanes }: Parts, { region, controlPlaneId }: Row): Promise<Observed['host']> {
  const hosted = controlPlanesIn(controlPlanes ?? { obstacle: 'the controllers have none configured' }, region)
  if ('obstacle' in hosted) return { obstacle: `its host: ${hosted.obstacle}` }
  try {
    const plane = await hosted.control.get(controlPlaneId)
    const { driver } = await hosted.control.offer()
    return { plane, isSimulated: driver === 'simulated' }
  } catch (error) {
    if (error instanceof Unavailable) return { obstacle: 'its host to answer' }
    throw error
  }
}

/** Throws Unavailable where nothing hosts it. */
function controlOf({ controlPlanes }: Parts, region: string): ControlPlanes {
  const hosted = controlPlanesIn(controlPlanes ?? { obstacle: 'the controllers have none configured' }, region)
  if ('obstacle' in hosted) throw new Unavailable('the host of playgrounds')
  return hosted.control
}

async function desiredOf({ db, sealing }: AllParts, row: Row): Promise<ControlPlaneDesired> {
  if (sealing?.isAvailable !== true) throw new Unavailable('the sealing key of the issuer of tokens')
  const { publicKey } = await orUnavailable(ensureIssuer(db, sealing))
  const { controlPlaneId: id, release, name, expiresAt } = row
  return {
    id,
    release,
    replicas: 1,
    serverNames: [],
    podCidrs: [PLAYGROUND_RANGES.pods],
    serviceCidrs: [PLAYGROUND_RANGES.services],
    issuer: { url: TOKEN_ISSUER_URL, audience: id, keys: [publicKey] },
    guest: { name, endsAt: expiresAt.toISOString(), ...PLAYGROUND_LIMITS },
  }
}

/** Claims a playground that was created without the API. A claim for a deleted one would never be released. */
async function claim(
  parts: AllParts,
  { accountId, playgroundId: id, region }: PlaygroundEffects['claim'],
  playground: PlaygroundObject,
): Promise<void> {
  await requireNewest(parts.store, Playground, playground)
  const offer = await controlOf(parts, region).offer()
  const row = newPlayground(
    { id, region, release: guestRelease(offer), controlPlaneId: newUuid(parts.random) },
    { digits: newUuid(parts.random).slice(-DIGITS), domain: offer.guests.appDomain, now: parts.clock.now() },
  )
  await orUnavailable(parts.db.transaction().execute((tx) => claimPlayground(tx, accountId, row)))
}

const effectsOf = (parts: AllParts): EffectsOn<PlaygroundEffects, PlaygroundSpec, PlaygroundStatus> => ({
  claim: withRefusalCondition(CLAIMED, async (input, playground) => {
    await claim(parts, input, playground)
    return grantedCondition(CLAIMED)
  }),
  ensure: withRefusalCondition(HOSTED, async (id) => {
    const row = await orUnavailable(findPlayground(parts.db, id))
    if (row === undefined || row.endedAt !== null) return undefined
    await controlOf(parts, row.region).ensure(await desiredOf(parts, row))
    return grantedCondition(HOSTED)
  }),
  async ready({ endpoint, certificateAuthority, ...id }) {
    const entry = { endpoint, certificateAuthority, at: parts.clock.now() }
    await orUnavailable(notePlaygroundReady(parts.db, id, entry))
    return undefined
  },
  async dismantle({ region, controlPlaneId }) {
    await controlOf(parts, region).remove(controlPlaneId)
    return undefined
  },
  async end({ reason, failureReason, ...id }) {
    const end = { reason, at: parts.clock.now(), ...defined({ failureReason }) }
    await orUnavailable(parts.db.transaction().execute((tx) => endPlayground(tx, id, end)))
    return undefined
  },
  async close(id) {
    await orUnavailable(closePlayground(parts.db, id, parts.clock.now()))
    return undefined
  },
  audit: auditEffect(parts),
})

/** The template's plan: pure, synchronous, total. A template that nodes build by their own recipe is available at once.
 *  A downloaded one is held by every node of its zones as an Image in its namespace, like custom images; each node
 *  downloads it by itself. */
import { isCancelled, type KindOf } from '../../../domain/operations.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  isAvailable,
  isBuiltHere,
  Template,
  type TemplateSpec,
  type TemplateStatus,
} from '../../../resources/catalog/index.ts'
import {
  AGENT_FINALIZER,
  Image,
  imageName,
  type ImageSpec,
  type ImageStatus,
  nodeNamespace,
  nodeOf,
} from '../../../resources/instance/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith, PlainAction } from '../../kit/effects.ts'
import { failedImages } from '../../kit/failed-images.ts'
import { type Health, healthConditions, toReason } from '../../kit/health.ts'
import { operationActions, type OperationDecision, truncated, waitActions } from '../../kit/operation/decision.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'

export type TemplateObject = KubeObject<TemplateSpec, TemplateStatus>
export type ImageObject = KubeObject<ImageSpec, ImageStatus>

/** The disks that are created from a template in a zone. */
export interface ZoneUse {
  readonly zone: string
  /** One of them exists, or the image is on every host. */
  readonly isMade: boolean
  /** When the newest of the disks that are still being created was requested; undefined when there is none. */
  readonly newestAt: string | undefined
  /** Why one could not be created, for people. */
  readonly detail?: string | undefined
}

export interface Observed {
  /** The reachable nodes of each existing zone that it must be in. */
  readonly zones: Readonly<Record<string, readonly string[]>>
  /** Zones of the spec that do not exist. */
  readonly unknownZones: readonly string[]
  /** Its Images on all nodes. */
  readonly images: readonly ImageObject[]
  /** Those Images that are on nodes of other zones. */
  readonly strays: readonly ImageObject[]
  /** For a template that nodes build: what is created from it in zones that have not had it yet. */
  readonly uses?: readonly ZoneUse[]
  /** Servers that are being created from it; undefined unless it is being deleted. */
  readonly users?: readonly string[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

export type TemplateEffects = AuditEffects
type TemplateAction = ActionWith<TemplateEffects>

interface ReconcileInput {
  readonly template: TemplateObject
  readonly observed: Observed
  readonly now: Date
}

interface Decision extends OperationDecision<TemplateAction, KindOf<'template'>> {
  readonly state: NonNullable<TemplateStatus['state']>
  readonly health: Health
  readonly detail?: string | undefined
  readonly isGone?: boolean
}

const NODES_WAIT_SECONDS = 10
const USERS_WAIT_SECONDS = 2
const EXPIRY_ACTOR = 'system:template_expiry'
/** The actor of copies that start with the first use of a template in a zone. */
const FIRST_USE_ACTOR = 'system:templates'
const EVER = new Date(0).toISOString()
/** The clock may be set meanwhile. */
const EXPIRY_LOOK_SECONDS_MAXIMUM = 3_600

export const plan = planOperations<TemplateObject, Observed, ReconcileInput, Decision, TemplateAction>({
  label: 'A template',
  endedByDeletion: () => false,
  flows: { 'template.create': create, 'template.copy': copy, 'template.delete': remove },
  inputOf: (template, observed, now) => ({ template, observed, now }),
  unchanged,
  detectEdit(input) {
    const { template, observed, now } = input
    const kind = detectEdit(template)
    if (kind !== undefined) return { kind, field: '', actor: observed.editor }
    if (isLeaving(template) || activeOperation(template) !== undefined) return undefined
    if (!isAvailable(template.spec, now))
      return { kind: 'template.delete', field: 'unavailableAt', actor: EXPIRY_ACTOR }
    const zone = zoneOfFirstUse(input)
    return zone === undefined
      ? undefined
      : { kind: 'template.copy', field: '', actor: FIRST_USE_ACTOR, arguments: { zone } }
  },
  idle: (input) => (isLeaving(input.template) ? remove(input) : untilExpiry(input, idle(input))),
  overdue(input, decision, error) {
    // A deletion continues after its operation has failed.
    if (isLeaving(input.template)) return { ...decision, outcome: 'failed', error }
    return input.operation.kind === 'template.copy' ? withdrawn(input, error) : failed(input, error)
  },
  // The entry is written once: by the request or here, whichever is first.
  auditedAs: ({ kind }) => kind,
  toActions: (input, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(input.template, decision),
    {
      do: 'status',
      status: { state: decision.state, stateDetail: detailOf(decision), ...held(input) },
      conditions: healthConditions(decision.health, toReason(decision.state), detailOf(decision) ?? ''),
    },
    ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
    ...waitActions(decision),
  ],
})

const detailOf = ({ detail }: Decision): string | undefined => (detail === undefined ? undefined : truncated(detail))

/** The operation that an edit needs; none for edited zones, where nodes follow (`zoneOfFirstUse`). */
export function detectEdit({
  metadata,
  spec,
  status,
}: TemplateObject): 'template.create' | 'template.delete' | undefined {
  if (metadata.deletionTimestamp !== undefined)
    return spec.operation?.kind === 'template.delete' ? undefined : 'template.delete'
  return isBuiltHere(spec) || spec.operation !== undefined || status?.state !== undefined
    ? undefined
    : 'template.create'
}

/** A zone that must have it and never had: nodes start to download it there, or to build it for the first disk. A copy
 *  that has ended there is not repeated for the same use: nodes continue with that by themselves. */
function zoneOfFirstUse({ template: { spec, status }, observed }: ReconcileInput): string | undefined {
  const isBuilt = isBuiltHere(spec)
  const endOf = (zone: string): string | undefined =>
    spec.operation?.kind === 'template.copy' && spec.operation.arguments?.['zone'] === zone
      ? status?.operation?.finishedAt
      : undefined
  const isToFetch = (zone: string): boolean => {
    const nodes = observed.zones[zone] ?? []
    const isBegun = nodes.some((node) => imageOn(observed, node) !== undefined)
    return status?.state === 'online' && nodes.length > 0 && !isBegun && endOf(zone) === undefined
  }
  const isToBuild = (zone: string): boolean => {
    const use = useIn(observed, zone)
    return use?.newestAt !== undefined && !use.isMade && Date.parse(use.newestAt) > Date.parse(endOf(zone) ?? EVER)
  }
  return Object.keys(observed.zones)
    .filter((zone) => status?.zones?.includes(zone) !== true)
    .sort()
    .find(isBuilt ? isToBuild : isToFetch)
}

/** The decision, with another check when the template expires. */
function untilExpiry({ template: { spec }, now }: ReconcileInput, decision: Decision): Decision {
  if (spec.unavailableAt === undefined) return decision
  const seconds = Math.max(1, (Date.parse(spec.unavailableAt) - now.getTime()) / 1000)
  const { waitFor = 'its end', waitSeconds = EXPIRY_LOOK_SECONDS_MAXIMUM } = decision
  return { ...decision, waitFor, waitSeconds: Math.min(seconds, waitSeconds) }
}

/** It is deleted, or its deletion was requested. */
export const isLeaving = ({ metadata, spec }: TemplateObject): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === 'template.delete'

function unchanged({ template: { spec, status } }: ReconcileInput): Decision {
  const { state = isBuiltHere(spec) ? 'online' : 'creating', stateDetail } = status ?? {}
  const health = state === 'online' ? 'ready' : state === 'error' ? 'stalled' : 'reconciling'
  return { state, health, detail: stateDetail }
}

const failed = ({ observed }: ReconcileInput, error: string): Decision => ({
  state: 'error',
  health: 'stalled',
  detail: error,
  step: 'fetched',
  outcome: 'failed',
  error,
  actions: removals(observed.images),
})

const isReady = ({ metadata, status }: ImageObject): boolean =>
  metadata.deletionTimestamp === undefined && status?.state === 'ready'
const nodesOf = ({ zones }: Observed): readonly string[] => Object.values(zones).flat()
const imageOn = ({ images }: Observed, node: string): ImageObject | undefined =>
  images.find((one) => nodeOf(one) === node)
const isHeldOn = (observed: Observed, node: string): boolean => {
  const image = imageOn(observed, node)
  return image !== undefined && isReady(image)
}
const isHeldIn = (observed: Observed, zone: string): boolean => {
  const nodes = observed.zones[zone] ?? []
  return nodes.length > 0 && nodes.every((node) => isHeldOn(observed, node))
}

const useIn = ({ uses = [] }: Observed, zone: string): ZoneUse | undefined => uses.find((use) => use.zone === zone)
const isThere = ({ template, observed }: ReconcileInput, zone: string): boolean =>
  isBuiltHere(template.spec) ? useIn(observed, zone)?.isMade === true : isHeldIn(observed, zone)

/** What is known of the images. A zone that has had it keeps it: a node that joins gets it as soon as it can. */
function held(input: ReconcileInput): Pick<TemplateStatus, 'zones' | 'sizeGibibytes'> {
  const { template, observed } = input
  const known = template.status?.zones ?? []
  const zones = Object.keys(observed.zones)
    .filter((zone) => known.includes(zone) || isThere(input, zone))
    .sort()
  if (isBuiltHere(template.spec)) return zones.length === 0 ? {} : { zones }
  const sizes = observed.images.filter(isReady).map(({ status }) => status?.sizeGibibytes ?? 0)
  return {
    zones,
    sizeGibibytes: Math.max(template.status?.sizeGibibytes ?? 0, ...sizes),
  }
}

/** An Image for every node that has none. Images on nodes of other zones are removed. */
function spread({ template, observed }: ReconcileInput): readonly PlainAction[] {
  const { url, checksum } = template.spec.image
  const nodes = nodesOf(observed)
  if (url === undefined || checksum === undefined) return []
  return [
    ...nodes
      .filter((node) => imageOn(observed, node) === undefined)
      .map((node) => ensureImage(template, node, { url, checksum: checksum.toLowerCase() })),
    ...removals(observed.strays),
  ]
}

function ensureImage(
  { metadata: { name, uid = '' } }: TemplateObject,
  node: string,
  content: Pick<ImageSpec, 'url' | 'checksum'>,
): PlainAction {
  const metadata = {
    namespace: nodeNamespace(node),
    name: imageName({ namespace: '', name }),
    finalizers: [AGENT_FINALIZER],
  }
  return { do: 'ensure', type: Image, draft: { metadata, spec: { image: { namespace: '', name, uid }, ...content } } }
}

const removals = (images: readonly ImageObject[]): readonly PlainAction[] =>
  images
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata: { namespace = '', name } }) => ({ do: 'remove', type: Image, key: { namespace, name } }))

const refusedOf = (images: readonly ImageObject[]): string | undefined =>
  images.find(({ status }) => status?.state === 'error')?.status?.detail

/** Steps in order: claimed, fetched. */
function create(input: During<ReconcileInput>): Decision {
  const { template, observed, operation } = input
  const [unknown] = observed.unknownZones
  if (unknown !== undefined) return { ...failed(input, `There is no zone ${unknown}.`), step: 'claimed' }
  if (isCancelled(operation)) return { ...failed(input, 'Its creation was cancelled.'), outcome: 'cancelled' }
  if (isBuiltHere(template.spec)) return { ...online(), step: 'fetched', outcome: 'succeeded' }
  const refusal = refusedOf(observed.images)
  if (refusal !== undefined) return failed(input, refusal)
  const zones = Object.keys(observed.zones)
  if (zones.length > 0 && zones.every((zone) => isHeldIn(observed, zone)))
    return { ...online(), step: 'fetched', outcome: 'succeeded', actions: spread(input) }
  return { state: 'creating', health: 'reconciling', ...fetching(input) }
}

const online = (): Decision => ({ state: 'online', health: 'ready' })
const fetching = (input: ReconcileInput): Pick<Decision, 'step' | 'actions' | 'waitFor' | 'waitSeconds'> => ({
  step: 'fetched',
  actions: spread(input),
  waitFor: nodesOf(input.observed).length === 0 ? 'a node of its zones' : 'the nodes of its zones to hold it',
  waitSeconds: NODES_WAIT_SECONDS,
})

/** The template stays as it was until the zone has it, and if it never gets it. Steps in order: claimed, fetched. */
function copy(input: During<ReconcileInput>): Decision {
  const { template, observed, operation } = input
  const zone = operation.arguments?.['zone'] ?? ''
  if (!isIn(template, zone)) return withdrawn(input, 'The template is no longer offered in the zone.')
  if (isCancelled(operation)) return withdrawn(input, 'It was cancelled.')
  if (isThere(input, zone))
    return { ...unchanged(input), step: 'fetched', outcome: 'succeeded', actions: spread(input) }
  if (isBuiltHere(template.spec)) return build(input, zone)
  const refusal = refusedOf(observed.images.filter((one) => observed.zones[zone]?.includes(nodeOf(one))))
  return refusal === undefined ? { ...unchanged(input), ...fetching(input) } : withdrawn(input, refusal)
}

const isIn = ({ spec: { zones } }: TemplateObject, zone: string): boolean => zones.length === 0 || zones.includes(zone)

/** Nodes build it for the first disk that is created from it there. */
function build(input: During<ReconcileInput>, zone: string): Decision {
  const step = { ...unchanged(input), step: 'fetched' as const }
  const { newestAt, detail } = useIn(input.observed, zone) ?? {}
  // An operator has requested it before the first use: there is nothing to do yet.
  if (input.operation.actor !== FIRST_USE_ACTOR) return { ...step, outcome: 'succeeded' }
  if (newestAt !== undefined) return { ...step, waitFor: `the first disk to be made from it in zone ${zone}` }
  return detail === undefined ? { ...step, outcome: 'cancelled' } : { ...step, outcome: 'failed', error: detail }
}

/** Removes the zone that an operator has added to the template, and then ends the operation. */
function withdrawn(input: During<ReconcileInput>, error: string): Decision {
  const { template, observed, operation } = input
  const zone = operation.arguments?.['zone'] ?? ''
  const { zones } = template.spec
  if (zones.includes(zone) && operation.actor !== FIRST_USE_ACTOR) {
    const left = { zones: zones.filter((one) => one !== zone) }
    return { ...unchanged(input), step: 'fetched', actions: [{ do: 'change', patch: { spec: left } }] }
  }
  const ended = isCancelled(operation)
    ? ({ outcome: 'cancelled' } as const)
    : ({ outcome: 'failed', error: refusedOf(observed.strays) ?? error } as const)
  return { ...unchanged(input), step: 'fetched', ...ended, actions: removals(observed.strays) }
}

/** Nodes that have joined get it too; a failed node is tried again after a while, which changes nothing for the
 *  others. */
function idle(input: ReconcileInput): Decision {
  const { template, observed, now } = input
  if (isBuiltHere(template.spec)) return online()
  if (template.status?.state !== 'online') return { ...unchanged(input), actions: removals(observed.images) }
  const { due, waitSeconds } = failedImages(
    observed.images.filter((one) => !observed.strays.includes(one)),
    now,
  )
  return {
    ...unchanged(input),
    actions: [...spread(input), ...removals(due)],
    ...(waitSeconds === undefined ? {} : { waitFor: 'another attempt', waitSeconds }),
  }
}

/** It is deleted when no reachable node holds it; an unreachable node removes its Image when it returns. */
function remove({ template, observed }: ReconcileInput): Decision {
  const { images, users = [] } = observed
  const { name, deletionTimestamp } = template.metadata
  const leaving: Decision = { state: 'deleting', health: 'reconciling', step: 'removed' }
  if (deletionTimestamp === undefined) return { ...leaving, actions: [{ do: 'remove', type: Template, key: { name } }] }
  // What is being created from it is finished first: nothing new starts.
  if (users.length > 0)
    return { ...leaving, waitFor: `${users[0]}, which is being made from it`, waitSeconds: USERS_WAIT_SECONDS }
  const reachable = nodesOf(observed)
  if (images.some((one) => one.metadata.deletionTimestamp === undefined || reachable.includes(nodeOf(one))))
    return { ...leaving, actions: removals(images), waitFor: 'the nodes to remove it', waitSeconds: NODES_WAIT_SECONDS }
  return { ...leaving, ...(activeOperation(template) === undefined ? {} : { outcome: 'succeeded' }), isGone: true }
}

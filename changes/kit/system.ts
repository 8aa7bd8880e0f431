/** What a server boots from, and the sizes that it can have with it: for its creation, its rebuild and another plan. */
import { requireOnlineImage } from '../../domain/custom-image/rules.ts'
import { isDatabasePlan } from '../../domain/database/rules.ts'
import { isManagedTemplate } from '../../domain/managed-machine/rules.ts'
import { badField, notFound, type Problem, unavailable } from '../../domain/problem.ts'
import { requireDiskSize } from '../../domain/storage/rules.ts'
import { noSuch } from '../../domain/suggestion.ts'
import {
  isHidden,
  isOffered,
  leastStorageOf,
  Plan,
  type PlanSpec,
  Template,
  Zone,
} from '../../resources/catalog/index.ts'
import { CustomImage, customImageFactsOf } from '../../resources/custom-image/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { storedOf } from '../../resources/kit/shapes.ts'
import type { ServerSpec } from '../../resources/server/index.ts'
import { unknownPlan } from './machine.ts'
import { type World } from './world.ts'
import { unknownZone } from './zone.ts'

/** A template of the operator, or a custom image of the account: its requirements of the size of a server. */
export interface System {
  /** For people. */
  readonly noun: 'template' | 'custom image'
  readonly minStorageGibibytes: number
  readonly minMemoryMebibytes: number
}

type SystemChoice = Pick<ServerSpec, 'zone' | 'template' | 'customImageId'>

/** Throws 400 for none, for both, for a template that does not exist and for an image of another zone, 404 for an image
 *  that is not the account's, and 409 for one that is not online. */
export function systemOf(
  world: World,
  { accountId, now }: { readonly accountId: string; readonly now: Date },
  { zone, template: name, customImageId }: SystemChoice,
): System {
  if (customImageId !== undefined) {
    if (name !== undefined) throw badField('customImageId', 'cannot be given together with template')
    return systemOfImage(world, { accountId, zone, customImageId })
  }
  if (name === undefined) throw badField('template', 'is required, unless custom_image_id is given')
  const template = world.find(Template, { name })
  if (template === undefined || isManagedTemplate(name) || !isOffered(template, zone, now))
    throw unknownTemplate(world, name, zone, now)
  const { minMemoryMebibytes } = template.spec
  return { noun: 'template', minStorageGibibytes: leastStorageOf(template), minMemoryMebibytes }
}

function systemOfImage(
  world: World,
  {
    accountId,
    zone,
    customImageId: name,
  }: { readonly accountId: string; readonly zone: string; readonly customImageId: string },
): System {
  const image = world.find(CustomImage, { namespace: accountNamespace(accountId), name })
  if (image === undefined) throw notFound('custom image')
  if (image.spec.zone !== zone)
    throw badField('customImageId', `the image is in zone ${image.spec.zone}: copy it to zone ${zone} first`)
  requireOnlineImage(customImageFactsOf(storedOf(image)))
  const { sizeGibibytes = 1, minMemoryMebibytes = 1 } = image.status ?? {}
  return { noun: 'custom image', minStorageGibibytes: sizeGibibytes, minMemoryMebibytes }
}

/** 400 that lists the templates of the zone. Hidden ones are not listed. */
const unknownTemplate = (world: World, name: string, zone: string, now: Date): Problem =>
  badField(
    'template',
    noSuch(
      'template',
      name,
      [...world.list(Template)]
        .filter((template) => !isHidden(template.spec, now) && isOffered(template, zone, now))
        .map(({ metadata }) => metadata.name)
        .sort(),
    ),
  )

/** Undefined when there is no such plan for servers: those of databases are for their machines only. */
export const findServerPlan = (world: World, name: string): PlanSpec | undefined =>
  isDatabasePlan(name) ? undefined : world.find(Plan, { name })?.spec

export interface Size {
  readonly plan: PlanSpec
  /** Of the zone. */
  readonly region: string
  readonly storageGibibytes: number
}

/** The size of a new server. Throws 400 for names that do not exist or do not fit together, 503 for a closed zone. */
export function sizeOf(
  world: World,
  { zone: name, plan: planName, storageGibibytes: wanted }: Pick<ServerSpec, 'zone' | 'plan' | 'storageGibibytes'>,
  system: System,
): Size {
  const zone = world.find(Zone, { name })
  const plan = findServerPlan(world, planName)
  if (zone === undefined) throw unknownZone(world, name)
  if (plan === undefined) throw unknownPlan(world, planName)
  const storageGibibytes = wanted ?? plan.storageGibibytes
  if (storageGibibytes < plan.storageGibibytes)
    throw badField('storageGibibytes', `must be at least the plan's ${plan.storageGibibytes}`)
  requireDiskSize(storageGibibytes, wanted === undefined ? 'plan' : 'storageGibibytes')
  if (storageGibibytes < system.minStorageGibibytes)
    throw badField('storageGibibytes', `the ${system.noun} needs ${system.minStorageGibibytes}`)
  if (plan.memoryMebibytes < system.minMemoryMebibytes)
    throw badField('plan', `the ${system.noun} needs ${system.minMemoryMebibytes} MiB of memory`)
  if (zone.spec.isClosed) throw unavailable('no_capacity', 'The zone takes no new servers.')
  return { plan, region: zone.spec.region, storageGibibytes }
}

/** The plan of the spec, for a server whose boot storage has a size already. Throws 400 for a plan that it cannot
 *  have. */
export function nextPlanOf(
  world: World,
  accountId: string,
  { plan: name, template, customImageId }: Pick<ServerSpec, 'plan' | 'template' | 'customImageId'>,
  heldGibibytes: number,
): PlanSpec {
  const plan = findServerPlan(world, name)
  if (plan === undefined) throw unknownPlan(world, name)
  requireDiskSize(plan.storageGibibytes, 'plan')
  if (plan.storageGibibytes < heldGibibytes)
    throw badField(
      'plan',
      `its storage of ${plan.storageGibibytes} GiB is smaller than the boot storage of ${heldGibibytes} GiB, which ` +
        'never shrinks',
    )
  const memory = template === undefined ? undefined : world.find(Template, { name: template })?.spec.minMemoryMebibytes
  if (memory !== undefined && plan.memoryMebibytes < memory)
    throw badField('plan', `the template needs ${memory} MiB of memory`)
  const image =
    customImageId === undefined
      ? undefined
      : world.find(CustomImage, { namespace: accountNamespace(accountId), name: customImageId })
  const { minMemoryMebibytes = 0 } = image?.status ?? {}
  if (plan.memoryMebibytes < minMemoryMebibytes)
    throw badField('plan', `the custom image needs ${minMemoryMebibytes} MiB of memory`)
  return plan
}

/** The initial content of a boot storage: a template of the operator, or a custom image of the account. */
import { badField, notFound } from '../../../domain/problem.ts'
import { isManagedTemplate } from '../../../domain/managed-machine/rules.ts'
import { requireOnlineImage } from '../../../domain/custom-image/rules.ts'
import { isOffered, leastStorageOf, Template } from '../../../resources/catalog/index.ts'
import {
  CustomImage,
  customImageFactsOf,
  type CustomImageSpec,
  type CustomImageStatus,
} from '../../../resources/custom-image/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { CreateServer } from '../../../resources/server/index.ts'
import { unknownTemplate } from '../catalog/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'

/** Its requirements of the size of a server. */
export interface System {
  /** For people. */
  readonly noun: 'template' | 'custom image'
  readonly minStorageGibibytes: number
  readonly minMemoryMebibytes: number
}

type CustomImageObject = KubeObject<CustomImageSpec, CustomImageStatus>

interface Choice extends Pick<CreateServer, 'zone' | 'template' | 'custom_image_id'> {
  /** Of the account. */
  readonly namespace: string
  readonly now: Date
}

/** Throws 400 for none, for both, for a template that does not exist and for an image of another zone, 404 for an image
 *  that is not the account's, and 409 for one that is not online. */
export async function chooseSystem(
  parts: Pick<Parts, 'caches'> & Partial<Pick<Parts, 'store'>>,
  { namespace, zone, template: name, custom_image_id: imageId, now }: Choice,
): Promise<System> {
  if (typeof imageId === 'string') {
    if (name !== undefined) throw badField('custom_image_id', 'cannot be given together with template')
    const key = { namespace, name: imageId }
    return systemOfImage((await parts.store?.get(CustomImage, key)) ?? parts.caches.of(CustomImage).get(key), zone)
  }
  if (name === undefined) throw badField('template', 'is required, unless custom_image_id is given')
  const template = parts.caches.of(Template).get({ name })
  if (template === undefined || isManagedTemplate(name) || !isOffered(template, zone, now))
    throw unknownTemplate(parts, name, zone, now)
  const { minMemoryMebibytes } = template.spec
  return { noun: 'template', minStorageGibibytes: leastStorageOf(template), minMemoryMebibytes }
}

function systemOfImage(image: CustomImageObject | undefined, zone: string): System {
  if (image === undefined) throw notFound('custom image')
  if (image.spec.zone !== zone)
    throw badField('custom_image_id', `the image is in zone ${image.spec.zone}: copy it to zone ${zone} first`)
  requireOnlineImage(customImageFactsOf(storedOf(image)))
  const { sizeGibibytes = 1, minMemoryMebibytes = 1 } = image.status ?? {}
  return { noun: 'custom image', minStorageGibibytes: sizeGibibytes, minMemoryMebibytes }
}

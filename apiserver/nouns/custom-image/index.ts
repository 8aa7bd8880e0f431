/** Custom images: their changes are in `changes/custom-image.ts`. */
import { customImageChanges } from '../../../changes/custom-image.ts'
import type { CustomImageFacts } from '../../../domain/custom-image/rules.ts'
import { customerEndpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  copyCustomImage,
  CustomImage,
  customImageFactsOf,
  type CustomImageSpec,
  type CustomImageStatus,
  type CustomImageView,
  getCustomImage,
  listCustomImages,
  toCustomImageView,
} from '../../../resources/custom-image/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { kind } from '../../kit/admission/kind.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { makerOf } from '../../kit/create.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { changeEndpoints } from '../../kit/rest.ts'

export type CustomImages = OperatedObjects<CustomImageSpec, CustomImageStatus, CustomImageView, CustomImageFacts>

const admission = admissionOf(customImageChanges)

/** By kubectl, a deletion waits for the creation: it is judged as if the image was complete. */
const complete = (image: KubeObject<CustomImageSpec, CustomImageStatus>): typeof image => {
  const { state = 'creating', ...status } = image.status ?? {}
  return state === 'creating' ? { ...image, status: { ...status, state: 'online' } } : image
}

/** More than any quota allows. */
const LISTED_MAXIMUM = 10_000

export const customImage = noun<
  Parts & { readonly customImages: CustomImages },
  { readonly customImages: CustomImages }
>({
  name: 'custom_image',
  kinds: [
    kind(CustomImage, {
      access: 'write',
      target: 'template',
      admission: { ...admission, delete: (parts, image) => admission.delete?.(parts, complete(image)) ?? [] },
    }),
  ],
  open: (parts) => ({
    customImages: openOperated(parts, {
      name: 'template',
      title: 'custom image',
      resource: CustomImage,
      surroundingsOf: () => ({}),
      toView: toCustomImageView,
      factsOf: customImageFactsOf,
    }),
  }),
  endpoints: ({ customImages, ...parts }) => [
    customerEndpoint(listCustomImages, async ({ caller: { accountId } }) => {
      await customImages.catchUp(accountId)
      const items = customImages.page(accountId, {}, undefined, LISTED_MAXIMUM).map(customImages.viewOf)
      return { status: 200, body: { items, next_cursor: null } }
    }),
    customerEndpoint(getCustomImage, async ({ caller, params }) => {
      const image = await customImages.read(caller.accountId, params.id)
      const body = { custom_image: customImages.viewOf(image) }
      return { status: 200, body, headers: { etag: etagOfObject(image) } }
    }),
    customerEndpoint(copyCustomImage, async (call) => {
      const { id: imageId } = call.params
      const { title, labels } = (await customImages.read(call.caller.accountId, imageId)).spec
      const copy = { zone: call.body.zone, title, labels, source: { imageId } }
      return makerOf(parts, customImageChanges, customImages)(call, copy)
    }),
    ...changeEndpoints(parts, customImageChanges, customImages),
  ],
  feeds: ({ customImages }) => [objectFeed('custom_image', listCustomImages, customImages)],
})

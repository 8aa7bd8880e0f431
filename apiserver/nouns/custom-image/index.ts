import { CustomImage } from '../../../resources/custom-image/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { customImageAdmission } from './admission.ts'
import { customImageEndpoints, type CustomImages, openCustomImages } from './endpoints.ts'

export type { CustomImages }

export const customImage = noun<
  Parts & { readonly customImages: CustomImages },
  { readonly customImages: CustomImages }
>({
  name: 'custom_image',
  kinds: [kind(CustomImage, { access: 'write', target: 'template', admission: customImageAdmission })],
  open: (parts) => ({ customImages: openCustomImages(parts) }),
  endpoints: customImageEndpoints,
})

/** When an Image that a host could not hold is attempted again, as a new object. The host makes a new one at once, and
 *  may refuse it at once: without a pause both would go on for ever. Pure. */
import type { KubeObject } from '../../kit/kube/object.ts'
import type { ImageSpec, ImageStatus } from '../../resources/instance/index.ts'
import { isNameTaken } from '../../resources/instance/name-taken.ts'

type ImageObject = KubeObject<ImageSpec, ImageStatus>

/** Between two attempts. */
const RETRY_SECONDS = 300

/** The failed Images that are old enough to be removed, and the seconds until the next one is. An Image whose name is
 *  taken stays: its host continues with it when the name is free, and would refuse another one as well. */
export function failedImages(
  images: readonly ImageObject[],
  now: Date,
): { readonly due: readonly ImageObject[]; readonly waitSeconds?: number } {
  const failed = images.filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined && status?.state === 'error' && !isNameTaken(status.conditions),
  )
  const secondsLeft = ({ metadata: { creationTimestamp } }: ImageObject): number =>
    creationTimestamp === undefined ? 0 : RETRY_SECONDS - (now.getTime() - Date.parse(creationTimestamp)) / 1_000
  const waits = failed.map(secondsLeft).filter((seconds) => seconds > 0)
  return {
    due: failed.filter((one) => secondsLeft(one) <= 0),
    ...(waits.length === 0 ? {} : { waitSeconds: Math.max(1, Math.min(...waits, RETRY_SECONDS)) }),
  }
}

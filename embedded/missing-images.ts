/** Features that no zone of this machine offers yet, because an image is missing that a person must build. */
import { openTemplateStore } from '../agents/node/images/template-store.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'

/** The features, their templates, and the commands that build these. */
const IMAGES = [
  ['edges', 'managed-machine', 'off, as load balancers are, until: sudo npm run image:managed'],
  ['databases', 'managed-database', 'off until: sudo npm run image:database'],
  ['nodes of clusters', 'kubernetes-node', 'off until: sudo npm run image:kubernetes'],
  ['dev clusters', 'dev-cluster', 'off until: sudo npm run image:dev-cluster'],
] as const

/** A line for each: its name, and what to do. An image of another version of svccloud does not count, because hosts do
 *  not accept it. `folder`: the hosts' folder for images. */
export async function missingImages(folder: string): Promise<readonly (readonly [string, string])[]> {
  const built = await openTemplateStore({ folder, clock: systemClock, log: silentLog }).built()
  return IMAGES.flatMap(([name, template, what]) =>
    built.includes(template) ? [] : [[name, `${what} -- --images ${folder}`] as const],
  )
}

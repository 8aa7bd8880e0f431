/** What the start says of images that are not there. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { managedVersion } from '../../agents/node/images/managed/recipe.ts'
import { missingImages } from '../../embedded/missing-images.ts'

let folder: string
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'svccloud-images-'))))
afterEach(() => rm(folder, { recursive: true, force: true }))

const MANIFEST = JSON.stringify({
  kernel: 'vmlinuz',
  initialRamdisk: 'initrd.img',
  commandLine: '',
  disk: 'disk.qcow2',
})

async function publish(template: string, version: string): Promise<void> {
  await mkdir(join(folder, template, version), { recursive: true })
  await writeFile(join(folder, template, version, 'manifest.json'), MANIFEST)
}
const missing = async () => (await missingImages(folder)).map(([name]) => name)

test('an image that is not there is missing, and the line says how it is made', async () => {
  expect(await missingImages(folder)).toEqual([
    ['edges', `off, as load balancers are, until: sudo npm run image:managed -- --images ${folder}`],
    ['databases', `off until: sudo npm run image:database -- --images ${folder}`],
    ['nodes of clusters', `off until: sudo npm run image:kubernetes -- --images ${folder}`],
    ['dev clusters', `off until: sudo npm run image:dev-cluster -- --images ${folder}`],
  ])
})

test('one of this recipe is there, one of another is not', async () => {
  await publish('managed-machine', '20260101T000000Z-0123456789ab')
  expect(await missing()).toEqual(['edges', 'databases', 'nodes of clusters', 'dev clusters'])
  await publish('managed-machine', await managedVersion('managed-machine', new Date()))
  expect(await missing()).toEqual(['databases', 'nodes of clusters', 'dev clusters'])
})

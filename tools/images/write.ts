/** The images of this repository as archives. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ociArchive } from '../../agents/node/images/oci-archive.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { readStage } from './dockerfile.ts'
import { baseLayer, dependenciesLayer, sourcesLayer } from './layers.ts'

/** Stages of the Dockerfile, by the charts' names of their images. */
export const IMAGES = {
  'svccloud/svccloud': 'control-plane',
  'svccloud/svccloud-node-agent': 'node-agent',
} as const

/** The full name of an image that is named without a registry. */
export const containerImageName = (image: keyof typeof IMAGES, tag: string): string => `docker.io/${image}:${tag}`

/** Writes one file for each to the folder, and returns their paths. */
export async function writeImages(folder: string, tag: string): Promise<readonly string[]> {
  const dockerfile = await readFile(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
  await promisify(execFile)(nodeBinary(), [join(import.meta.dirname, '../../portal/build/main.ts')])
  const base = await baseLayer()
  const dependencies = await dependenciesLayer(readStage(dockerfile, 'runtime'))
  const files: string[] = []
  for (const [image, target] of Object.entries(IMAGES)) {
    const stage = readStage(dockerfile, target)
    const layers = [base, dependencies, await sourcesLayer(stage)]
    const file = join(folder, `${target}.tar`)
    // of the same table
    await writeFile(
      file,
      ociArchive({ name: containerImageName(image as keyof typeof IMAGES, tag), layers, config: stage.config }),
    )
    files.push(file)
  }
  return files
}

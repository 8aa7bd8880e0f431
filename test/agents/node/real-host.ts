/** What tests with real guests share: the template, built once per machine. */
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TemplateImage } from '../../../agents/node/images/recipe.ts'
import { openTemplateStore, type TemplateStore } from '../../../agents/node/images/template-store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { eventually } from '../../eventually.ts'

/** Shared by test runs; the store locks it and publishes whole versions only. */
export const IMAGE_FOLDER = join(tmpdir(), 'svccloud-test-images')

async function openTestTemplates(): Promise<TemplateStore> {
  await mkdir(IMAGE_FOLDER, { recursive: true })
  return openTemplateStore({ folder: IMAGE_FOLDER, clock: systemClock, log: silentLog })
}

/** The template `tiny-linux`, built if need be. Throws with the reason when it cannot be. */
export async function tinyLinux(): Promise<TemplateImage> {
  const templates = await openTestTemplates()
  templates.prepare('tiny-linux')
  const state = await eventually('the template', async () => {
    const found = await templates.newest('tiny-linux')
    return found.is === 'absent' ? undefined : found
  })
  if (state.is !== 'ready') throw new Error(state.reason)
  return state.image
}

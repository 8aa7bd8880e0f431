/** The page of what databases have says what the image is built with, and what plans set. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  CONTENT_PACKAGES,
  DATABASE_EXTENSIONS,
  DATABASE_LOCALES,
} from '../../agents/node/images/managed/database-contents.ts'
import { managedSystem } from '../../agents/node/images/managed/recipe.ts'
import {
  DATABASE_PLANS,
  DATABASE_RETENTION_DAYS,
  DATABASE_STORAGE_GIBIBYTES,
  KEEP_BACKUPS_DAYS,
  serverSettings,
} from '../../domain/database/rules.ts'
import { ROOT } from './blocks.ts'

const page = await readFile(join(ROOT, 'docs/database-contents.md'), 'utf8')
const section = (title: string): string => page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''
/** Names of the paragraph that is nothing but names. */
const listed = (title: string): readonly string[] => {
  const list = section(title)
    .split('\n\n')
    .find((paragraph) => /^`[^`]+`,/.test(paragraph))
  return [...(list ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

test('extensions and locales are those that the image is checked for', async () => {
  expect(listed('Extensions')).toEqual(DATABASE_EXTENSIONS)
  expect(listed('Locales')).toEqual(['C.utf8', ...DATABASE_LOCALES])
  const { packages, commands } = await managedSystem('managed-database')
  expect(packages).toEqual(expect.arrayContaining(CONTENT_PACKAGES))
  const checked = commands
    .filter(([program, , , name]) => program === 'sh' && name === 'check')
    .map((words) => words[4])
  expect(checked).toEqual([DATABASE_LOCALES, DATABASE_EXTENSIONS].map((names) => names.toSorted().join('\n')))
})

test('limits are those of the plans', () => {
  const rows = [...section('Limits').matchAll(/^\| `(.*?)` \| (.*) \|$/gm)].map(([, plan, cells = '']) => [
    plan,
    ...cells.split(' | ').map((cell) => cell.replace(' MB', 'MB')),
  ])
  expect(rows).toEqual(
    DATABASE_PLANS.map((plan) => {
      const { max_connections, shared_buffers, work_mem, maintenance_work_mem } = serverSettings(plan)
      return [plan, max_connections, shared_buffers, work_mem, maintenance_work_mem]
    }),
  )
  const text = section('Limits').replaceAll('\n', ' ')
  expect(text).toContain(`${DATABASE_STORAGE_GIBIBYTES.least} to ${DATABASE_STORAGE_GIBIBYTES.most} GiB`)
  expect(text).toContain(`${DATABASE_RETENTION_DAYS.least} to ${DATABASE_RETENTION_DAYS.most} days`)
  expect(text).toContain(`up to ${KEEP_BACKUPS_DAYS.most} days after`)
})

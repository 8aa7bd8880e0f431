/** Each portal names operations of its own listener only: the compiler knows those of both. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import customers from '../../portal/generated/operations.json' with { type: 'json' }
import operators from '../../portal/generated/operator-operations.json' with { type: 'json' }

const PORTAL = join(import.meta.dirname, '../../portal')
const OPERATORS = 'operator/'

/** Paths below `portal/` of all sources. */
async function sources(): Promise<readonly string[]> {
  const entries = await readdir(PORTAL, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name).slice(PORTAL.length + 1))
    .filter((path) => !/(^|\/)(node_modules|dist)/.test(path))
}

/** Operations of a catalogue that the source names as literals. */
const named = (text: string, catalogue: object): readonly string[] =>
  Object.keys(catalogue).filter((id) => text.includes(`'${id}'`))

test('no page of customers names an operation of operators', async () => {
  const files = (await sources()).filter((path) => !path.startsWith(OPERATORS))
  const found: string[] = []
  for (const file of files)
    for (const id of named(await readFile(join(PORTAL, file), 'utf8'), operators)) found.push(`${file}: ${id}`)
  expect(found).toEqual([])
})

test('no page of operators names an operation of customers', async () => {
  const files = (await sources()).filter((path) => path.startsWith(OPERATORS))
  const found: string[] = []
  let count = 0
  for (const file of files) {
    const text = await readFile(join(PORTAL, file), 'utf8')
    count += named(text, operators).length
    for (const id of named(text, customers)) found.push(`${file}: ${id}`)
  }
  expect(found).toEqual([])
  expect(count).toBeGreaterThan(0)
})

/** Reachable from no page, each with its reason. */
const WITHOUT_PAGE: Readonly<Record<string, string>> = {
  revoke_credit: 'no operation lists the credits of an account for staff',
  disable_user: 'no operation lists the people of an account for staff',
  enable_user: 'no operation lists the people of an account for staff',
  reset_user_second_factor: 'no operation lists the people of an account for staff',
  end_playground_as_staff: 'no operation lists playgrounds for staff',
  move_storage: 'no operation lists storages for operators',
  migrate_server: 'no operation lists servers for operators',
  recover_server: 'no operation lists servers for operators',
  settle_server_migration: 'no operation lists servers for operators',
  force_release_server: 'no operation lists servers for operators',
  list_invoice_runs: 'invoices have no page yet',
  list_failed_invoices: 'invoices have no page yet',
  retry_failed_invoices: 'invoices have no page yet',
  list_failed_payments: 'payments have no page yet',
  retry_failed_payments: 'payments have no page yet',
  list_payment_differences: 'payments have no page yet',
  expand_control_plane: 'the control plane has no page yet',
  shrink_control_plane: 'the control plane has no page yet',
}

test('every other operation of operators is reachable from a page', async () => {
  const files = (await sources()).filter((path) => path.startsWith(OPERATORS) && !path.includes('/texts/'))
  const used = new Set<string>()
  for (const file of files) for (const id of named(await readFile(join(PORTAL, file), 'utf8'), operators)) used.add(id)
  const unused = Object.keys(operators).filter((id) => !used.has(id))
  expect(unused.toSorted()).toEqual(Object.keys(WITHOUT_PAGE).toSorted())
})

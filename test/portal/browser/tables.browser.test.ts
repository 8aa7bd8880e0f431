/** Tables with more rows than anybody sees at once. */
import { expect, it } from 'vitest'
import { usePortal } from './kit/browser.ts'

const portal = usePortal()

const ROWS = 1_000
const IN_DOCUMENT_MAXIMUM = 60

/** As the list answers it, as far as it is read here. */
interface Scripts {
  readonly items: readonly object[]
}

it('have only the rows in sight, and reach the last', async () => {
  const person = await portal.signUp()
  const body = { name: 'one', content: '#!/bin/sh\necho hello\n' }
  expect((await person.customer.request('POST', '/v1/init-scripts', body)).status).toBe(201)
  const page = await portal.page({ as: person })
  // A quota forbids so many.
  await page.route(/\/v1\/init-scripts(\?|$)/, async (route) => {
    const response = await route.fetch()
    const answer = (await response.json()) as Scripts
    const scripts = Array.from({ length: ROWS }, (_, at) => ({
      ...answer.items[0],
      id: `00000000-0000-7000-8000-${String(at).padStart(12, '0')}`,
      name: `script-${at}`,
    }))
    await route.fulfill({ response, json: { ...answer, items: scripts } })
  })
  await page.goto('/init-scripts')
  await page.getByText('script-0', { exact: true }).first().waitFor()
  const table = page.getByRole('table')
  await expect.poll(() => table.getByRole('row').count()).toBeLessThan(IN_DOCUMENT_MAXIMUM)
  expect(await table.getAttribute('aria-rowcount')).toBe(String(ROWS + 1))
  await page.evaluate("document.querySelector('.table-scroll').scrollTop = 1e9")
  await page
    .getByText(`script-${ROWS - 1}`, { exact: true })
    .first()
    .waitFor()
  expect(await table.getByRole('row').count()).toBeLessThan(IN_DOCUMENT_MAXIMUM)
})

it('select row after row, and open the actions of one', async () => {
  const person = await portal.signUp()
  for (const name of ['one', 'two', 'three'])
    await person.customer.request('POST', '/v1/init-scripts', { name, content: '#!/bin/sh\n' })
  const page = await portal.page({ as: person })
  await page.goto('/init-scripts')
  const select = (name: string) => page.getByRole('checkbox', { name: `Select ${name}` }).press('Space')
  await select('one')
  await select('two')
  await page.getByText('2 selected', { exact: true }).waitFor()
  await select('one')
  await page.getByText('1 selected', { exact: true }).waitFor()
  expect(await page.getByRole('checkbox', { name: 'Select two' }).isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Actions of three' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('checkbox', { name: 'Select three' }).waitFor({ state: 'detached' })
  await page.getByText('1 selected', { exact: true }).waitFor()
})

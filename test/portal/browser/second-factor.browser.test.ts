/** The second factor: set up with a code, then a sign-in with a recovery code. */
import { generate } from 'otplib'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { PASSWORD } from '../../e2e/customer.ts'
import { usePortal } from './kit/browser.ts'

const portal = usePortal()

/** An open page would go on asking, and be refused. */
async function signOut(page: Page): Promise<void> {
  await page.goto('about:blank')
  await page.context().clearCookies()
}

describe('a second factor', () => {
  it('is set up with a code, and a recovery code signs in once', async () => {
    const person = await portal.signUp()
    const page = await portal.page({ as: person, allows: [/status of 401 .*\/login\/mfa$/] })
    await page.goto('/settings/security')
    await page.getByRole('button', { name: 'Set up your second factor' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('img', { name: 'Code for your authenticator app' }).waitFor()
    const secret = await page.getByRole('dialog').locator('code').first().innerText()
    await page.getByLabel('Code', { exact: true }).fill(await generate({ secret }))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    const codes = await page.getByRole('dialog').getByRole('listitem').allInnerTexts()
    expect(codes).toHaveLength(10)
    await page.getByText('I have kept them').click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('On, 10 recovery codes left').waitFor()
    await signOut(page)
    for (const outcome of ['signed in', 'refused'] as const) {
      await page.goto('/login')
      await page.getByLabel('Email').fill(person.email)
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('button', { name: 'Use a recovery code instead' }).click()
      await page.getByLabel('Recovery code', { exact: true }).fill(codes[0] ?? '')
      await page.getByRole('button', { name: 'Verify', exact: true }).click()
      if (outcome === 'refused') await page.getByRole('alert').waitFor()
      else await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      await signOut(page)
    }
  })
})

/** What happens to a page when the service, or the session, is lost. */
import { describe, expect, it } from 'vitest'
import { PASSWORD } from '../../e2e/customer.ts'
import { usePortal } from './kit/browser.ts'

const portal = usePortal()

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGQw0o8v2Xg7GgJ0mB1r1Qm8M6v1k3Qv1Jb3wq0hN5aX ada@laptop'

describe('an open form', () => {
  it('keeps its content while the service does not answer, and makes one thing', async () => {
    const person = await portal.signUp()
    const page = await portal.page({ as: person, allows: [/ERR_INTERNET_DISCONNECTED/] })
    await page.goto('/ssh-keys/new')
    await page.getByLabel('Name').fill('kept')
    await page.getByLabel('Public key').fill(KEY)
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Create SSH key' }).click()
    await page.getByText('The service does not answer').waitFor()
    expect(await page.getByLabel('Name').inputValue()).toBe('kept')
    await page.context().setOffline(false)
    await page.getByRole('button', { name: 'Create SSH key' }).click()
    await page.getByRole('heading', { level: 1, name: 'kept' }).waitFor()
    const { body } = await person.customer.request<{ items: readonly { name: string }[] }>('GET', '/v1/ssh-keys')
    expect(body.items.map(({ name }) => name)).toEqual(['kept'])
  })

  it('keeps its content when the session ends, and goes on after a sign-in', async () => {
    const person = await portal.signUp()
    const page = await portal.page({ as: person, allows: [/status of 401/] })
    await page.goto('/ssh-keys/new')
    await page.getByLabel('Name').fill('kept')
    await page.getByLabel('Public key').fill(KEY)
    // the form is tried when it rests, which would notice the end of the session before the button does
    await page.getByText('ssh keys: 1 more').waitFor()
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Create SSH key' }).click()
    const sheet = page.getByRole('dialog', { name: 'Sign in again' })
    await sheet.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await sheet.getByRole('button', { name: 'Sign in', exact: true }).click()
    await sheet.waitFor({ state: 'detached' })
    expect(await page.getByLabel('Name').inputValue()).toBe('kept')
    await page.getByRole('button', { name: 'Create SSH key' }).click()
    await page.getByRole('heading', { level: 1, name: 'kept' }).waitFor()
  })

  it('takes nobody to another origin after a sign-in', async () => {
    const person = await portal.signUp()
    const page = await portal.page()
    await page.goto('/login?return_to=//evil.example/')
    await page.getByLabel('Email').fill(person.email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(new URL(page.url()).origin).toBe(portal.url)
  })
})

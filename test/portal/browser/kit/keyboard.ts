/** What a person does who uses no mouse. Each step waits for what it needs, and fails when Tab does not come there. */
import type { Locator, Page } from 'playwright-core'
import { dialogWith, eyesOf, frontOf, type Hands } from './hands.ts'

/** Of a page or a dialog. */
const STOPS_MAXIMUM = 150

export interface Keyboard extends Hands {
  /** Moves the focus by Tab to the element, or to something in it. */
  reach(target: Locator): Promise<void>
  /** A switch or a box. */
  toggle(name: string): Promise<void>
}

export function keyboardOf(page: Page): Keyboard {
  const within = () => frontOf(page)
  const reach = async (target: Locator): Promise<void> => {
    await target.waitFor()
    for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
      if (await target.evaluate((element) => element.contains(element.ownerDocument.activeElement))) return
      await page.keyboard.press('Tab')
    }
    throw new Error(`Tab does not come to ${String(target)}`)
  }
  return {
    page,
    ...eyesOf(page),
    reach,
    async press(name, role = 'button') {
      const exact = typeof name === 'string'
      await reach((await within()).getByRole(role, { name, exact }).first())
      await page.keyboard.press('Enter')
    },
    async answer(name) {
      const dialog = dialogWith(page, name)
      await reach(dialog.getByRole('button', { name, exact: true }))
      await page.keyboard.press('Enter')
      await dialog.waitFor({ state: 'detached' })
    },
    async fill(label, text) {
      await reach((await within()).getByRole('textbox', { name: label }).first())
      await page.keyboard.press('Control+A')
      await page.keyboard.type(text)
    },
    async choose(label, option) {
      await reach((await within()).getByRole('button', { name: new RegExp(`\\b${label}$`) }).first())
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor()
      await page.keyboard.type(option)
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor({ state: 'detached' })
    },
    async toggle(name) {
      const scope = await within()
      await reach(scope.getByRole('switch', { name }).or(scope.getByRole('checkbox', { name })).first())
      await page.keyboard.press('Space')
    },
    async open(tab) {
      await reach(page.getByRole('tab', { selected: true }).first())
      const wanted = page.getByRole('tab', { name: tab, exact: true })
      for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
        if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return
        await page.keyboard.press('ArrowRight')
      }
      throw new Error(`arrows do not come to the tab ${tab}`)
    },
    async menu(name) {
      await reach(page.getByRole('main').getByRole('button', { name: 'More actions' }).first())
      await page.keyboard.press('Enter')
      await page.getByRole('menuitem', { name, exact: true }).waitFor()
      await page.keyboard.type(name)
      await page.keyboard.press('Enter')
    },
  }
}

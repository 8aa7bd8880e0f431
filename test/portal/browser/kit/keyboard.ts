/** What a person does who uses no mouse. Each step waits for what it needs, and fails when Tab does not come there. */
import type { Locator, Page } from 'playwright-core'
import { dialogWith, eyesOf, frontOf, type Hands } from './hands.ts'

/** Of a page or a dialog. */
const STOPS_MAXIMUM = 150

/** What moves the focus towards an element that is elsewhere. */
const KEYS = { before: 'Shift+Tab', after: 'Tab', 'behind the navigation': 'Enter' } as const

export interface Keyboard extends Hands {
  /** Moves the focus by Tab to the element, or to something in it. */
  reach(target: Locator): Promise<void>
}

export function keyboardOf(page: Page): Keyboard {
  const within = () => frontOf(page)
  const reach = async (target: Locator): Promise<void> => {
    await target.waitFor()
    for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
      const where = await target.evaluate((element) => {
        const { activeElement: now } = element.ownerDocument
        if (element.contains(now)) return 'here'
        // the first stop of every page leads past the navigation
        if (now.matches('a[href="#content"]') && element.closest('main') !== null) return 'behind the navigation'
        return now.compareDocumentPosition(element) === now.DOCUMENT_POSITION_PRECEDING ? 'before' : 'after'
      })
      if (where === 'here') return
      await page.keyboard.press(KEYS[where])
    }
    throw new Error(`Tab does not come to ${String(target)}`)
  }
  const arrowTo = async (wanted: Locator): Promise<void> => {
    for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
      if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return
      await page.keyboard.press('ArrowRight')
    }
    throw new Error(`arrows do not come to ${String(wanted)}`)
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
      await reach((await within()).getByRole('button', { name: new RegExp(`\\b${label}( optional)?$`) }).first())
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor()
      await page.keyboard.type(option)
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor({ state: 'detached' })
    },
    async take(name) {
      const card = (await within()).getByRole('radio', { name }).first()
      await reach(card.locator('xpath=ancestor::*[@role="radiogroup"][1]'))
      await arrowTo(card)
    },
    async toggle(name) {
      const scope = await within()
      await reach(scope.getByRole('switch', { name }).or(scope.getByRole('checkbox', { name })).first())
      await page.keyboard.press('Space')
    },
    async open(tab) {
      await reach(page.getByRole('tab', { selected: true }).first())
      await arrowTo(page.getByRole('tab', { name: tab, exact: true }))
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

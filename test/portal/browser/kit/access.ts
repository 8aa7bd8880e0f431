/** What a page is for people who do not see it, or use no mouse. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { CDPSession, Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** As axe reports it. */
interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly {
    readonly target: readonly unknown[]
    readonly html?: string
    readonly failureSummary?: string
  }[]
}

const withDebugger = async <Result>(page: Page, work: (session: CDPSession) => Promise<Result>): Promise<Result> => {
  const session = await page.context().newCDPSession(page)
  try {
    return await work(session)
  } finally {
    await session.detach()
  }
}

/** What fades in has another contrast meanwhile. Spinners never end; the others are at their end at once, because one
 *  that draws no frames never comes there. */
const END_ANIMATIONS = `for (const each of document.getAnimations())
  if (each.effect?.getComputedTiming().iterations !== Infinity) each.finish()`

/** What react-aria has said to screen readers: for some seconds it names elements that may be gone since. */
const ANNOUNCED = '[data-live-announcer]'

/** What axe finds (WCAG 2.2 AA and its best practices) on the page or in a part of it, a line each; empty is good. Its
 *  script comes through the debugger, because the policy of the page refuses it. */
export const accessFaults = (page: Page, part = ''): Promise<readonly string[]> =>
  withDebugger(page, async (session) => {
    await session.send('Runtime.evaluate', { expression: END_ANIMATIONS })
    await session.send('Runtime.evaluate', { expression: AXE })
    const context = part === '' ? `{ exclude: '${ANNOUNCED}' }` : JSON.stringify(part)
    const expression = `axe.run(${context}, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) => violations)`
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined) throw new Error(`axe failed: ${JSON.stringify(exceptionDetails)}`)
    // as axe documents it
    return (result.value as readonly Violation[]).flatMap(({ id, help, nodes }) =>
      nodes.map(
        ({ target, html = '', failureSummary = '' }) =>
          `${id} (${help}) at ${target.join(' ')} (${html.slice(0, 200)}): ${failureSummary}`,
      ),
    )
  })

/** The element with the focus as a screen reader names it: `button "Create server"`. */
export const focused = (page: Page): Promise<string> =>
  withDebugger(page, async (session) => {
    const { result } = await session.send('Runtime.evaluate', { expression: 'document.activeElement' })
    if (result.objectId === undefined) return 'nothing'
    const { nodes } = await session.send('Accessibility.getPartialAXTree', {
      objectId: result.objectId,
      fetchRelatives: false,
    })
    const [node] = nodes
    return `${String(node?.role?.value ?? 'nothing')} "${String(node?.name?.value ?? '')}"`
  })

const TABS_MAXIMUM = 80

/** Presses a key until the focus is where a person wants it: by role and name, as `focused` says it. Throws with what
 *  had the focus meanwhile when it does not come there. */
export async function pressUntilFocused(page: Page, key: string, wanted: RegExp): Promise<void> {
  const passed: string[] = []
  for (let presses = 0; presses < TABS_MAXIMUM; presses++) {
    const now = await focused(page)
    if (wanted.test(now)) return
    passed.push(now)
    await page.keyboard.press(key)
  }
  throw new Error(`${key} never reached ${wanted}, but: ${passed.join(', ')}`)
}

/** In the page: text, because tests have the types of Node. */
const OVERFLOW = `(() => {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .map(({ tagName, className, textContent }) => tagName + '.' + className + ': ' + textContent.slice(0, 40))
})()`

/** Elements that are wider than the page, which then scrolls sideways; empty is good. */
export const overflow = (page: Page): Promise<readonly string[]> => page.evaluate<readonly string[]>(OVERFLOW)

const SIZES = [320, 768, 1360] as const

/** Looks at a page as it is now, without loading it again: axe in both themes, and its width in windows from a small
 *  phone to a notebook. A line for each fault; empty is good. */
export async function faultsInEveryView(page: Page): Promise<readonly string[]> {
  const before = page.viewportSize()
  const faults: string[] = []
  for (const theme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme: theme })
    faults.push(...(await accessFaults(page)).map((fault) => `${theme}: ${fault}`))
  }
  for (const width of SIZES) {
    await page.setViewportSize({ width, height: before?.height ?? 900 })
    faults.push(...(await overflow(page)).map((fault) => `${width} px: ${fault}`))
  }
  if (before !== null) await page.setViewportSize(before)
  return faults
}

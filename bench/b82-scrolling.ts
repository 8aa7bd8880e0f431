/** Frames while a list of 10 000 loaded servers is scrolled, against the same movement of an empty page in the same
 *  Chromium. What it draws with decides how many there are: there is no graphics card here. */
import type { CDPSession, Page } from 'playwright-core'
import { heapMegabytes, loadAll, openPortal } from './portal.ts'
import type { Bench, Side } from './runner.ts'

const SERVERS = { full: 10_000, short: 300 }
const STEP_PIXELS = 400
const LONG_MILLISECONDS = 50
const ROWS = 'rows in the document'
const HEAP = 'MB of heap'
const LONG_SHARE = `share of frames over ${LONG_MILLISECONDS} ms`

export const bench: Bench = {
  name: 'B82 scrolling',
  question: `frames while ${SERVERS.full} servers are scrolled`,
  subjectName: 'the list of servers',
  peerName: 'an empty page',
  unit: 'frames',
  goal: 0.5,
  limits: { [ROWS]: 60, [HEAP]: 80, [LONG_SHARE]: 0.05 },
  heldBy:
    'a frame of this movement brings nine new rows, each with a checkbox, a link and a button of react-aria, and is ' +
    'drawn without a graphics card.',
  tier: 'browser',
  async open(round) {
    const portal = await openPortal([SERVERS[round]])
    const { page, session } = await portal.open(portal.cloud)
    await loadAll(page, SERVERS[round])
    const heap = await heapMegabytes(session)
    const empty = await portal.browser.newPage()
    await empty.setContent(
      '<div class="table-scroll" style="height: 800px; overflow: auto"><p style="height: 460000px">',
    )
    const seen = { frames: 0, long: 0, longest: 0, rows: 0, processor: 0 }
    await session.send('Performance.enable')
    const scrolling = (tab: Page): Side => ({
      async run(seconds) {
        await tab.bringToFront()
        const before = await processorSeconds(session)
        const done = await tab.evaluate<Scrolled>(scrollFor(seconds))
        if (tab === page) {
          seen.processor += (await processorSeconds(session)) - before
          seen.frames += done.units
          seen.long += done.long
          seen.longest = Math.max(seen.longest, done.longest)
          seen.rows = Math.max(seen.rows, done.rows)
        }
        return done
      },
    })
    return {
      subject: scrolling(page),
      peer: scrolling(empty),
      facts: () => ({
        [ROWS]: seen.rows,
        [HEAP]: heap.toFixed(1),
        [LONG_SHARE]: (seen.long / seen.frames).toFixed(3),
        'ms of processor time a frame': ((seen.processor / seen.frames) * 1_000).toFixed(1),
        'longest task, ms': Math.round(seen.longest),
      }),
      close: () => portal.close(),
    }
  },
}

/** Of the process of the page. */
async function processorSeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  return metrics.find(({ name }) => name === 'ProcessTime')?.value ?? Number.NaN
}

interface Scrolled {
  readonly units: number
  readonly seconds: number
  /** Frames that took long. */
  readonly long: number
  /** Milliseconds. */
  readonly longest: number
  readonly rows: number
}

/** In the page: scrolls down and up again, a step for each frame. */
const scrollFor = (seconds: number): string => `(async () => {
  const scroll = document.querySelector('.table-scroll')
  let [units, long, longest, rows, step] = [0, 0, 0, 0, ${STEP_PIXELS}]
  const tasks = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
  })
  tasks.observe({ type: 'longtask' })
  const frame = () => new Promise(requestAnimationFrame)
  const begin = await frame()
  let last = begin
  do {
    const before = scroll.scrollTop
    scroll.scrollTop = before + step
    if (scroll.scrollTop === before) step = -step
    const now = await frame()
    units += 1
    if (now - last > ${LONG_MILLISECONDS}) long += 1
    rows = Math.max(rows, document.querySelectorAll('tbody tr[data-row]').length)
    last = now
  } while (last - begin < ${seconds * 1_000})
  await frame()
  tasks.disconnect()
  return { units, seconds: (last - begin) / 1_000, long, longest, rows }
})()`

/** Short notices, and what screen readers say of changes on the page. */
import './toast.css'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { storeOf } from '../api/store.ts'
import { after } from '../system.ts'
import { t } from '../texts/index.ts'
import { Button } from './button.tsx'

interface Notice {
  readonly id: number
  readonly text: string
  readonly href?: string
}

const SHOWN_MILLISECONDS = 6_000
const notices = storeOf<readonly Notice[]>([])
const spoken = storeOf('')
let count = 0

/** Told to screen readers only. */
export const announce = (text: string): void => spoken.set(text)

/** Shown for some seconds, and told to screen readers. */
export function notify(text: string): void {
  const notice = { id: (count += 1), text }
  notices.set([...notices.get().slice(-3), notice])
  announce(text)
  after(SHOWN_MILLISECONDS, () => dismiss(notice.id))
}

const dismiss = (id: number): void => notices.set(notices.get().filter((each) => each.id !== id))

/** The regions, once on the page. */
export function Notices(): ReactNode {
  return (
    <>
      <div className="for-readers" role="status" aria-live="polite">
        {spoken.use()}
      </div>
      <section className="toasts" aria-label={t().ui.notices}>
        {notices.use().map(({ id, text }) => (
          <div key={id} className="toast">
            <span>{text}</span>
            <Button kind="quiet" label={t().ui.dismiss} icon={<X aria-hidden="true" />} onPress={() => dismiss(id)} />
          </div>
        ))}
      </section>
    </>
  )
}

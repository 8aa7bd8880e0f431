/** A small panel that opens from a button. */
import './overlay.css'
import type { ReactNode } from 'react'
import { Dialog, DialogTrigger, Popover } from 'react-aria-components'

export interface DropProps {
  readonly label: string
  readonly button: ReactNode
  readonly children: ReactNode
}

export const Drop = ({ label, button, children }: DropProps): ReactNode => (
  <DialogTrigger>
    {button}
    <Popover className="popover drop" placement="bottom end" offset={6}>
      <Dialog aria-label={label} className="drop-content">
        {children}
      </Dialog>
    </Popover>
  </DialogTrigger>
)

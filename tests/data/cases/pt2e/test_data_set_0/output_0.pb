
Boutput_0J( oW¾r²>fnŠ>´P?z¾:ƒ¾Ê,ö½´f¾€r=kË>